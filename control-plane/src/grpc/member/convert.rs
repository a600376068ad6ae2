//! Members between the wire and the store.

use kanat_proto::v1 as wire;
use kanat_store::member::Member;

use crate::app::etag;
use crate::app::member::Invitation;
use crate::carry::carry;

pub fn member(member: Member) -> wire::Member {
    let invited_by = member.inviter().map(|(kind, id, name)| wire::Creator {
        r#type: kind.as_str().to_owned(),
        id: Some(id.to_owned()),
        name: name.to_owned(),
    });
    carry!(
        wire::Member, member { email, name, role }
        text { id }
        optional { invited_at, joined_at, last_seen_at }
        with {
            status: member.status().as_str().to_owned(),
            etag: etag(&member),
            invited_by,
            invite_url: None,
            invite_url_shown: None,
            invite_sent: None,
        }
    )
}

pub fn invitation(invitation: Invitation) -> wire::Member {
    let url = invitation.url.map(|url| url.expose().clone());
    wire::Member {
        invite_url_shown: url.is_none().then_some(false),
        invite_url: url,
        invite_sent: Some(invitation.is_sent),
        ..member(invitation.member)
    }
}
