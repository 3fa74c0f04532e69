//! Reads lists from the API server, in pages and with a timeout. A list that fails is named, and the others are kept.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tidegate_graph::ClusterFacts;

use super::facts::{ClusterObject, FactsReader};

/// Objects per page: some megabytes of pods.
const PAGE: u32 = 250;

/// What is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterScope {
    /// Namespaces; all if there are none.
    pub namespaces: Vec<String>,
}

/// Reads the facts from the API server. The result names each list that the client may not read, or that is not complete
/// within `timeout`.
pub async fn read_cluster(
    client: &Client,
    scope: &ClusterScope,
    timeout: Duration,
) -> ClusterFacts {
    let read = ClusterReading {
        client,
        scope,
        timeout,
        reader: Mutex::default(),
    };
    let nodes = vec![Api::<Node>::all(client.clone())];
    let (a, b, c, d, e, f) = tokio::join!(
        read.namespaced::<Deployment>(|o| ClusterObject::Deployment(o.into())),
        read.namespaced::<StatefulSet>(|o| ClusterObject::StatefulSet(o.into())),
        read.namespaced::<DaemonSet>(|o| ClusterObject::DaemonSet(o.into())),
        read.namespaced::<Pod>(|o| ClusterObject::Pod(o.into())),
        read.namespaced::<EndpointSlice>(|o| ClusterObject::EndpointSlice(o.into())),
        read.all(nodes, |o| ClusterObject::Node(o.into())),
    );
    let reader = read.reader.into_inner();
    let unread = [a, b, c, d, e, f].into_iter().flatten().collect();
    reader
        .unwrap_or_else(PoisonError::into_inner)
        .finish(unread)
}

struct ClusterReading<'a> {
    client: &'a Client,
    scope: &'a ClusterScope,
    timeout: Duration,
    reader: Mutex<FactsReader>,
}

impl ClusterReading<'_> {
    /// Reads all lists of a kind. Returns why lists are missing or incomplete.
    async fn namespaced<K>(&self, wrap: fn(K) -> ClusterObject) -> Vec<String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let client = || self.client.clone();
        let apis = match self.scope.namespaces.as_slice() {
            [] => vec![Api::all(client())],
            names => names
                .iter()
                .map(|name| Api::namespaced(client(), name))
                .collect(),
        };
        self.all(apis, wrap).await
    }

    async fn all<K>(&self, apis: Vec<Api<K>>, wrap: fn(K) -> ClusterObject) -> Vec<String>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let lists = apis.iter().map(|api| async move {
            let reason = match tokio::time::timeout(self.timeout, self.pages(api, wrap)).await {
                Ok(Ok(())) => return None,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("not complete within {:?}", self.timeout),
            };
            Some(format!("{}: {reason}", K::plural(&())))
        });
        join_all(lists).await.into_iter().flatten().collect()
    }

    /// Reads a list page by page, so that memory holds one page at a time and a failure keeps the pages before it.
    async fn pages<K>(&self, api: &Api<K>, wrap: fn(K) -> ClusterObject) -> Result<(), kube::Error>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = api.list(&params).await?;
            {
                let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
                page.items
                    .into_iter()
                    .for_each(|item| reader.take(wrap(item)));
            }
            let next = page.metadata.continue_.filter(|token| !token.is_empty());
            let Some(token) = next else {
                return Ok(());
            };
            params = params.continue_token(&token);
        }
    }
}
