//! The methods of environments.

mod convert;

use super::page;
use crate::app::environment;

service! {
    environment_service_server::EnvironmentService;

    create_environment(call, request: CreateEnvironmentRequest) -> Environment {
        let made = environment::create(&call, &request.name, request.base_url.as_deref()).await?;
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
        let (id, update) = convert::update(request)?;
        let updated = environment::update(&call, &id, update).await?;
        Ok(updated.map(convert::environment))
    }
}
