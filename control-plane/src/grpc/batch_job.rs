//! The methods of batch jobs.

mod accept;
mod convert;

use futures::StreamExt;
use kanat_model::id::{BatchJobId, FlowId};
use kanat_proto::v1 as wire;
use kanat_proto::v1::batch_job_service_server::BatchJobService;
use tonic::{Request, Response, Status, Streaming};

use super::{Api, caller, page, respond};
use crate::app::batch_job;

#[tonic::async_trait]
impl BatchJobService for Api {
    async fn create_batch_job(
        &self,
        request: Request<Streaming<wire::CreateBatchJobRequest>>,
    ) -> Result<Response<wire::BatchJob>, Status> {
        let caller = caller(&request)?;
        let pieces = request
            .into_inner()
            .map(|message| message.map(convert::piece).map_err(convert::broken));
        let job = batch_job::create(&self.app, &caller, pieces).await;
        respond(job.map(convert::job))
    }

    async fn list_batch_jobs(
        &self,
        request: Request<wire::ListBatchJobsRequest>,
    ) -> Result<Response<wire::ListBatchJobsResponse>, Status> {
        let caller = caller(&request)?;
        let wire::ListBatchJobsRequest {
            flow_id,
            limit,
            offset,
        } = request.into_inner();
        let flow = flow_id.map(FlowId::from);
        let found = batch_job::list(
            &self.app,
            &caller,
            flow.as_ref(),
            page::asked(limit, offset)?,
        )
        .await;
        let (data, pagination) = page::convert(found, convert::job)?;
        Ok(Response::new(wire::ListBatchJobsResponse {
            data,
            pagination,
        }))
    }

    async fn get_batch_job(
        &self,
        request: Request<wire::GetBatchJobRequest>,
    ) -> Result<Response<wire::BatchJob>, Status> {
        let caller = caller(&request)?;
        let id = BatchJobId::from(request.into_inner().id);
        let job = batch_job::get(&self.app, &caller, &id).await;
        respond(job.map(convert::job))
    }

    async fn list_batch_job_errors(
        &self,
        request: Request<wire::ListBatchJobErrorsRequest>,
    ) -> Result<Response<wire::ListBatchJobErrorsResponse>, Status> {
        let caller = caller(&request)?;
        let as_csv = wants_csv(&request);
        let wire::ListBatchJobErrorsRequest { id, limit, offset } = request.into_inner();
        let id = BatchJobId::from(id);
        if as_csv {
            let csv = batch_job::errors_csv(&self.app, &caller, &id).await;
            return respond(csv.map(|csv| wire::ListBatchJobErrorsResponse {
                csv: Some(csv),
                ..Default::default()
            }));
        }
        let found = batch_job::errors(&self.app, &caller, &id, page::asked(limit, offset)?).await;
        let (data, pagination) = page::convert(found, convert::error)?;
        Ok(Response::new(wire::ListBatchJobErrorsResponse {
            data,
            pagination,
            csv: None,
        }))
    }

    async fn retry_batch_job(
        &self,
        request: Request<wire::RetryBatchJobRequest>,
    ) -> Result<Response<wire::BatchJob>, Status> {
        let caller = caller(&request)?;
        let id = BatchJobId::from(request.into_inner().id);
        let job = batch_job::retry(&self.app, &caller, &id).await;
        respond(job.map(convert::job))
    }

    async fn cancel_batch_job(
        &self,
        request: Request<wire::CancelBatchJobRequest>,
    ) -> Result<Response<wire::BatchJob>, Status> {
        let caller = caller(&request)?;
        let id = BatchJobId::from(request.into_inner().id);
        let job = batch_job::cancel(&self.app, &caller, &id).await;
        respond(job.map(convert::job))
    }
}

fn wants_csv<T>(request: &Request<T>) -> bool {
    request
        .metadata()
        .get("accept")
        .and_then(|value| value.to_str().ok())
        .is_some_and(accept::prefers_csv)
}
