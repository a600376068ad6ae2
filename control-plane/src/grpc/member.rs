//! The methods of members.

mod convert;

use kanat_model::id::MemberId;
use kanat_proto::v1 as wire;

use super::page;
use crate::app::member;

/// Page that links of invitations lead to. The token stands behind `#`, which browsers keep to
/// themselves: the page cannot show it.
const INVITATION_PAGE: &str = include_str!("member/invitation.html");

service! {
    member_service_server::MemberService impl {
        async fn get_invitation_page(
            &self,
            _: tonic::Request<wire::GetInvitationPageRequest>,
        ) -> Result<tonic::Response<wire::InvitationPage>, tonic::Status> {
            let html = Some(INVITATION_PAGE.to_owned());
            Ok(tonic::Response::new(wire::InvitationPage { html }))
        }
    };

    invite_member(call, request: InviteMemberRequest) -> Member {
        let invitation = member::invite(&call, &request.email, &request.role).await?;
        Ok(convert::invitation(invitation))
    }

    list_members(call, request: ListMembersRequest) -> ListMembersResponse {
        let page = page::asked(request.limit, request.offset)?;
        let found = member::list(&call, &request.search.unwrap_or_default(), page).await?;
        Ok(page::answer(found, convert::member))
    }

    get_member(call, request: GetMemberRequest) -> Member {
        call.get(&MemberId::from(request.id)).await.map(convert::member)
    }

    update_member(call, request: UpdateMemberRequest) -> Member {
        let id = MemberId::from(request.id);
        member::update(&call, &id, request.role.as_deref()).await.map(convert::member)
    }

    remove_member(call, request: RemoveMemberRequest) -> RemoveMemberResponse {
        member::remove(&call, &request.id.into()).await?;
        Ok(wire::RemoveMemberResponse {})
    }

    resend_invitation(call, request: ResendInvitationRequest) -> Member {
        member::resend(&call, &request.id.into()).await.map(convert::invitation)
    }

    accept_invitation(call, request: AcceptInvitationRequest) -> Member {
        member::accept(call, &request.token).await.map(convert::member)
    }
}
