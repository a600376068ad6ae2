//! The methods of batch jobs.

mod accept;
mod convert;

use futures::StreamExt;
use kanat_model::Result;
use kanat_model::id::{BatchJobId, FlowId};
use kanat_proto::v1 as wire;
use tonic::{Request, Response, Status, Streaming};

use super::{header, page, respond};
use crate::app::{Call, batch_job};

service! {
    batch_job_service_server::BatchJobService
    impl {
        async fn create_batch_job(
            &self,
            request: Request<Streaming<wire::CreateBatchJobRequest>>,
        ) -> Result<Response<wire::BatchJob>, Status> {
            let (call, pieces) = self.accept(request)?;
            let pieces = pieces
                .map(|message| message.map(convert::piece).map_err(convert::broken));
            respond(batch_job::create(&call, pieces).await.map(convert::job))
        }

        async fn list_batch_job_errors(
            &self,
            request: Request<wire::ListBatchJobErrorsRequest>,
        ) -> Result<Response<wire::ListBatchJobErrorsResponse>, Status> {
            let as_csv = header(&request, "accept").is_some_and(accept::prefers_csv);
            let (call, request) = self.accept(request)?;
            respond(if as_csv {
                csv_of_errors(&call, &request.id.into()).await
            } else {
                page_of_errors(&call, request).await
            })
        }
    };

    list_batch_jobs(call, request: ListBatchJobsRequest) -> ListBatchJobsResponse {
        let flow = request.flow_id.map(FlowId::from);
        let page = page::asked(request.limit, request.offset)?;
        let found = batch_job::list(&call, flow.as_ref(), page).await?;
        Ok(page::answer(found, convert::job))
    }

    get_batch_job(call, request: GetBatchJobRequest) -> BatchJob {
        batch_job::get(&call, &request.id.into()).await.map(convert::details)
    }

    retry_batch_job(call, request: RetryBatchJobRequest) -> BatchJob {
        batch_job::retry(&call, &request.id.into()).await.map(convert::job)
    }

    cancel_batch_job(call, request: CancelBatchJobRequest) -> BatchJob {
        batch_job::cancel(&call, &request.id.into()).await.map(convert::job)
    }
}

async fn csv_of_errors(call: &Call, id: &BatchJobId) -> Result<wire::ListBatchJobErrorsResponse> {
    Ok(wire::ListBatchJobErrorsResponse {
        csv: Some(batch_job::errors_csv(call, id).await?),
        ..Default::default()
    })
}

async fn page_of_errors(
    call: &Call,
    request: wire::ListBatchJobErrorsRequest,
) -> Result<wire::ListBatchJobErrorsResponse> {
    let page = page::asked(request.limit, request.offset)?;
    let found = batch_job::errors(call, &request.id.into(), page).await?;
    let (data, pagination) = page::convert(found, convert::error);
    Ok(wire::ListBatchJobErrorsResponse {
        data,
        pagination,
        csv: None,
    })
}
