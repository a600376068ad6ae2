//! The methods of environments.

mod convert;

use kanat_proto::v1 as wire;

use super::page;
use crate::app::environment;

service! {
    environment_service_server::EnvironmentService;

    create_environment(call, request: CreateEnvironmentRequest) -> Environment {
        let made = environment::create(&call, convert::new(request)).await?;
        Ok(made.map(convert::environment))
    }

    list_environments(call, request: ListEnvironmentsRequest) -> ListEnvironmentsResponse {
        let page = page::asked(request.limit, request.offset)?;
        Ok(page::answer(environment::list(&call, page).await?, convert::environment))
    }

    get_environment(call, request: GetEnvironmentRequest) -> Environment {
        environment::get(&call, &request.id).await.map(convert::environment)
    }

    update_environment(call, request: UpdateEnvironmentRequest) -> Environment {
        let (id, fields) = convert::update(request)?;
        let updated = environment::update(&call, &id, fields).await?;
        Ok(updated.map(convert::environment))
    }

    delete_environment(call, request: DeleteEnvironmentRequest) -> DeleteEnvironmentResponse {
        environment::delete(&call, &request.id).await?;
        Ok(wire::DeleteEnvironmentResponse {})
    }
}
