//! Published APIs by path: a prefix tree of segments, kept as one map from the text of every
//! prefix, so that neighbouring sets share what did not change. A look-up costs the length of the
//! path, whatever the number of APIs is.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use kanat_plan_stream::ShardedMap;

use super::api::Api;
use super::path::{Path, Segment};

/// Text of a parameter in a prefix; no static segment has braces.
const PARAMETER: &str = "/{}";

/// Published APIs of an environment by path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes {
    prefixes: ShardedMap<String, Prefix>,
}

/// Prefix of a path.
#[derive(Debug, Clone, Default)]
struct Prefix {
    /// Number of longer paths with this prefix.
    longer: usize,
    /// APIs at this path, one for each method.
    apis: Vec<Arc<Api>>,
}

impl Routes {
    /// Returns another API with the method of `api` and a path that matches the same requests.
    pub fn conflict(&self, api: &Api) -> Option<&Arc<Api>> {
        let prefix = self.prefixes.get(&whole(&api.path))?;
        prefix
            .apis
            .iter()
            .find(|other| other.method == api.method && other.id != api.id)
    }

    /// Inserts `api`, which has no conflict.
    pub fn insert(&mut self, api: Arc<Api>) {
        let (beginnings, whole) = beginnings(&api.path);
        for beginning in beginnings {
            self.change(beginning, |prefix| prefix.longer += 1);
        }
        self.change(whole, |prefix| prefix.apis.push(api));
    }

    /// Removes `api`, if it is here.
    pub fn remove(&mut self, api: &Api) {
        let (beginnings, whole) = beginnings(&api.path);
        if !self
            .prefixes
            .get(&whole)
            .is_some_and(|prefix| prefix.apis.iter().any(|other| other.id == api.id))
        {
            return;
        }
        for beginning in beginnings {
            self.change(beginning, |prefix| prefix.longer -= 1);
        }
        self.change(whole, |prefix| {
            prefix.apis.retain(|other| other.id != api.id)
        });
    }

    fn change(&mut self, key: String, change: impl FnOnce(&mut Prefix)) {
        let mut prefix = self.prefixes.get(&key).cloned().unwrap_or_default();
        change(&mut prefix);
        if prefix.longer == 0 && prefix.apis.is_empty() {
            self.prefixes.remove(&key);
        } else {
            self.prefixes.insert(key, prefix);
        }
    }

    /// Calls `visit` with the APIs at each path that matches the segments, static segments before
    /// parameters, until it breaks.
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

    /// Visits one level of the tree. The depth is at most that of the longest path.
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
        // A segment with such characters is no static segment, but may be a parameter.
        let is_static = !segment.contains(['/', '{', '}']);
        for next in [is_static.then_some(segment.as_ref()), None] {
            match next {
                Some(segment) => {
                    beginning.push('/');
                    beginning.push_str(segment);
                }
                None => beginning.push_str(PARAMETER),
            }
            if let Some(prefix) = self.prefixes.get(beginning.as_str()) {
                if rest.is_empty() {
                    if !prefix.apis.is_empty() {
                        visit(&prefix.apis)?;
                    }
                } else if prefix.longer > 0 {
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

/// Returns the proper prefixes of a path, and the whole path.
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

    use super::super::path::RequestPath;
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
        let requested = RequestPath::parse(path).unwrap();
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
        let copied = routes.prefixes.unshared_entries(&before.prefixes).count();
        assert!(
            copied * 50 < routes.prefixes.len(),
            "{copied} of {} were copied",
            routes.prefixes.len()
        );
        assert_eq!(found(&routes, "/shops/9999/1/lines"), ["9999"]);
        assert_eq!(found(&before, "/shops/7/1/new"), Vec::<String>::new());
    }

    #[test]
    fn a_removed_api_leaves_no_prefix() {
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
        assert!(routes.prefixes.is_empty());
    }
}
