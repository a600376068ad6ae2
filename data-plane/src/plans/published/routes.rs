//! Which APIs stand at a path: a tree of segments, kept as one map from the text of every beginning
//! of a path, so that neighbouring sets share what did not change and a look-up costs as much as
//! the path is long, however many APIs there are.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use kanat_plan_stream::Sharded;

use super::api::Api;
use super::path::{Path, Segment};

/// Stands for a parameter in a beginning of a path; no static segment has braces.
const PARAMETER: &str = "/{}";

/// The APIs of an environment by their paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes {
    places: Sharded<String, Place>,
}

/// A beginning of a path.
#[derive(Debug, Clone, Default)]
struct Place {
    /// Paths that go on from here.
    onward: usize,
    /// The APIs that stand here, one for each method.
    apis: Vec<Arc<Api>>,
}

impl Routes {
    /// The API that has the place of `api`: the same method, and a path that takes the same
    /// requests.
    pub fn conflict(&self, api: &Api) -> Option<&Arc<Api>> {
        let place = self.places.get(&whole(&api.path))?;
        place
            .apis
            .iter()
            .find(|other| other.method == api.method && other.id != api.id)
    }

    /// Puts `api` in its place, which must be free.
    pub fn insert(&mut self, api: Arc<Api>) {
        let (beginnings, whole) = beginnings(&api.path);
        for beginning in beginnings {
            self.change(beginning, |place| place.onward += 1);
        }
        self.change(whole, |place| place.apis.push(api));
    }

    /// Takes `api` out, if it is here.
    pub fn remove(&mut self, api: &Api) {
        let (beginnings, whole) = beginnings(&api.path);
        if !self
            .places
            .get(&whole)
            .is_some_and(|place| place.apis.iter().any(|other| other.id == api.id))
        {
            return;
        }
        for beginning in beginnings {
            self.change(beginning, |place| place.onward -= 1);
        }
        self.change(whole, |place| place.apis.retain(|other| other.id != api.id));
    }

    fn change(&mut self, key: String, change: impl FnOnce(&mut Place)) {
        let mut place = self.places.get(&key).cloned().unwrap_or_default();
        change(&mut place);
        if place.onward == 0 && place.apis.is_empty() {
            self.places.remove(&key);
        } else {
            self.places.insert(key, place);
        }
    }

    /// Shows `visit` the APIs at each path that takes the segments, those with static segments
    /// before those with parameters, until it has seen enough.
    pub fn visit<'s, T>(
        &'s self,
        segments: &[Cow<'_, str>],
        visit: &mut impl FnMut(&'s [Arc<Api>]) -> ControlFlow<T>,
    ) -> Option<T> {
        let length = segments
            .iter()
            .map(|segment| segment.len().max(2) + 1)
            .sum();
        match self.walk(&mut String::with_capacity(length), segments, visit) {
            ControlFlow::Break(found) => Some(found),
            ControlFlow::Continue(()) => None,
        }
    }

    /// As deep as a path has segments, which its reader bounds; it only goes where paths go on.
    fn walk<'s, T>(
        &'s self,
        beginning: &mut String,
        segments: &[Cow<'_, str>],
        visit: &mut impl FnMut(&'s [Arc<Api>]) -> ControlFlow<T>,
    ) -> ControlFlow<T> {
        let Some((segment, rest)) = segments.split_first() else {
            return ControlFlow::Continue(());
        };
        let length = beginning.len();
        // What only looks like a beginning of a path stands for itself in a parameter.
        let is_static = !segment.contains(['/', '{', '}']);
        for next in [is_static.then_some(segment.as_ref()), None] {
            match next {
                Some(segment) => {
                    beginning.push('/');
                    beginning.push_str(segment);
                }
                None => beginning.push_str(PARAMETER),
            }
            if let Some(place) = self.places.get(beginning.as_str()) {
                if rest.is_empty() {
                    if !place.apis.is_empty() {
                        visit(&place.apis)?;
                    }
                } else if place.onward > 0 {
                    self.walk(beginning, rest, visit)?;
                }
            }
            beginning.truncate(length);
            if next.is_none() {
                break;
            }
        }
        ControlFlow::Continue(())
    }
}

fn whole(path: &Path) -> String {
    beginnings(path).1
}

/// The beginnings of a path without the whole, and the whole.
fn beginnings(path: &Path) -> (Vec<String>, String) {
    let mut beginnings = Vec::with_capacity(path.segments().len());
    let mut whole = String::new();
    for (at, segment) in path.segments().iter().enumerate() {
        if at > 0 {
            beginnings.push(whole.clone());
        }
        match segment {
            Segment::Static(text) => {
                whole.push('/');
                whole.push_str(text);
            }
            Segment::Parameter(_) => whole.push_str(PARAMETER),
        }
    }
    (beginnings, whole)
}

#[cfg(test)]
mod tests {
    use kanat_proto::plan::v1::{ApiVersion, PublishedApi};

    use super::super::path::Requested;
    use super::*;

    fn api(id: &str, method: &str, path: &str) -> Arc<Api> {
        let version = ApiVersion {
            label: "v1".into(),
            number: 1,
            status: "active".into(),
            ..Default::default()
        };
        let plan = PublishedApi {
            id: id.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            auth: "none".to_owned(),
            versions: vec![version],
            ..Default::default()
        };
        Arc::new(Api::compile(plan).unwrap())
    }

    fn found(routes: &Routes, path: &str) -> Vec<String> {
        let requested = Requested::parse(path).unwrap();
        let mut found = Vec::new();
        let end: Option<()> = routes.visit(&requested.segments, &mut |apis| {
            found.extend(apis.iter().map(|api| api.id.clone()));
            ControlFlow::Continue(())
        });
        assert!(end.is_none());
        found
    }

    #[test]
    fn static_segments_come_before_parameters_at_every_depth() {
        let mut routes = Routes::default();
        for (id, path) in [
            ("a", "orders/{id}"),
            ("b", "orders/new"),
            ("c", "{kind}/new"),
            ("d", "orders/{id}/lines"),
        ] {
            routes.insert(api(id, "GET", path));
        }
        assert_eq!(found(&routes, "/orders/new"), ["b", "a", "c"]);
        assert_eq!(found(&routes, "/orders/7"), ["a"]);
        assert_eq!(found(&routes, "/orders/new/lines"), ["d"]);
        assert_eq!(found(&routes, "/orders"), Vec::<String>::new());
        assert_eq!(found(&routes, "/orders/%7B%7D"), ["a"]);
        assert_eq!(found(&routes, "/orders/7%2Flines"), ["a"]);
    }

    #[test]
    fn one_change_among_ten_thousand_shares_the_rest() {
        let mut routes = Routes::default();
        for number in 0..10_000 {
            routes.insert(api(
                &number.to_string(),
                "GET",
                &format!("shops/{number}/{{id}}/lines"),
            ));
        }
        let before = routes.clone();
        routes.insert(api("new", "GET", "shops/7/{id}/new"));
        let copied = routes.places.unshared(&before.places).count();
        assert!(
            copied * 50 < routes.places.len(),
            "{copied} of {} were copied",
            routes.places.len()
        );
        assert_eq!(found(&routes, "/shops/9999/1/lines"), ["9999"]);
        assert_eq!(found(&before, "/shops/7/1/new"), Vec::<String>::new());
    }

    #[test]
    fn what_is_taken_out_leaves_nothing_behind() {
        let mut routes = Routes::default();
        let first = api("a", "GET", "x/{y}/z");
        let second = api("b", "POST", "x/{other}/z");
        routes.insert(Arc::clone(&first));
        assert!(routes.conflict(&second).is_none());
        assert_eq!(
            routes
                .conflict(&api("c", "GET", "x/{z}/z"))
                .map(|api| api.id.as_str()),
            Some("a")
        );
        routes.insert(Arc::clone(&second));
        assert_eq!(found(&routes, "/x/1/z"), ["a", "b"]);
        routes.remove(&first);
        routes.remove(&first);
        assert_eq!(found(&routes, "/x/1/z"), ["b"]);
        routes.remove(&second);
        assert!(routes.places.is_empty());
    }
}
