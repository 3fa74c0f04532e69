//! What is known of a host: its numbers of endpoints and clients, and its objective.
//!
//! The first source with a number counts: a file of counts, then the service graph and Kubernetes, then the flags, which
//! apply to all hosts. A number without a source stays unknown, and is named.

use std::collections::BTreeMap;

use tidegate_advise::RuleTarget;
use tidegate_advise::chain::qualified_host;
use tidegate_advise::recommend::{AdviceTerms, UpstreamAdvice, recommend};
use tidegate_core::config::Readable;
use tidegate_graph::{BuiltGraph, ClusterFacts};

use super::bounds::ProxyTopology;
use super::{FixedNumbers, LimitedProxies, MigrationOptions};

/// Numbers of one host in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Endpoints.
    pub replicas: Option<u32>,
    /// Proxies of clients.
    pub clients: Option<u32>,
    /// The latency that 99 of 100 requests must meet, as a duration.
    pub latency: Option<String>,
}

/// An objective that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownObjective {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// The latency, as a duration.
    pub target: String,
    /// The share of requests that must not fail, from 0 to 1, if it is known.
    pub success_rate: Option<f64>,
    /// Where it comes from. It may contain anything.
    pub source: String,
}

/// All sources of numbers.
#[derive(Clone, Debug, Default)]
pub struct MigrationSources<'a> {
    /// Numbers of hosts, as `service.namespace`.
    pub counts: BTreeMap<String, HostCounts>,
    /// The service graph.
    pub graph: Option<&'a BuiltGraph>,
    /// The facts about the cluster, if they were read.
    pub cluster: Option<&'a ClusterFacts>,
}

/// What is known of hosts.
#[derive(Clone, Debug)]
pub(super) struct HostKnowledge<'a> {
    counts: &'a BTreeMap<String, HostCounts>,
    advice: BTreeMap<String, UpstreamAdvice<'a>>,
    graph: Option<&'a BuiltGraph>,
    cluster: Option<&'a ClusterFacts>,
    fixed: &'a FixedNumbers,
    proxies: LimitedProxies,
    waypoint: &'a str,
}

impl<'a> HostKnowledge<'a> {
    pub(super) fn new(sources: &'a MigrationSources<'a>, options: &'a MigrationOptions) -> Self {
        let advice = sources
            .graph
            .map(|built| recommend(built, &AdviceTerms::default()));
        let named =
            advice
                .into_iter()
                .flatten()
                .filter_map(|found| match found.upstream.target.clone() {
                    Ok(RuleTarget::Service(host)) => Some((host, found)),
                    _ => None,
                });
        Self {
            counts: &sources.counts,
            advice: named.collect(),
            graph: sources.graph,
            cluster: sources.cluster,
            fixed: &options.fixed,
            proxies: options.proxies,
            waypoint: &options.waypoint,
        }
    }

    /// The numbers that a bound needs, or the names of the missing ones.
    pub(super) fn topology(&self, host: &str, namespace: &str) -> Result<ProxyTopology, String> {
        let host = qualified_host(host, namespace);
        let replicas = self.replicas(&host).ok_or_else(|| {
            format!("endpoints of {host} (--replicas, --counts, or a graph with Kubernetes)")
        });
        let clients = self.clients(&host);
        match self.proxies {
            // Without clients, only the sum over all sidecars is unknown.
            LimitedProxies::Sidecars => Ok(ProxyTopology::Sidecars {
                clients: clients.ok(),
                replicas: replicas?,
            }),
            LimitedProxies::Waypoint => {
                let waypoints = self.waypoints(namespace).ok_or_else(|| {
                    format!(
                        "pods of the waypoint {namespace}/{} (--waypoint-replicas, or Kubernetes)",
                        self.waypoint
                    )
                });
                match (replicas, clients, waypoints) {
                    (Ok(replicas), Ok(clients), Ok(waypoints)) => Ok(ProxyTopology::Waypoint {
                        clients,
                        replicas,
                        waypoints,
                    }),
                    (replicas, clients, waypoints) => {
                        let missing = [replicas.err(), clients.err(), waypoints.err()];
                        Err(missing.into_iter().flatten().collect::<Vec<_>>().join("; "))
                    }
                }
            }
        }
    }

    /// The objective of a host; `None` if only the flag, which applies to all hosts, may have one.
    pub(super) fn objective(&self, host: &str, namespace: &str) -> Option<KnownObjective> {
        let host = qualified_host(host, namespace);
        let of_file = self
            .counts
            .get(&host)
            .and_then(|found| found.latency.clone());
        if let Some(target) = of_file {
            return Some(KnownObjective {
                quantile: super::QUANTILE,
                target,
                success_rate: None,
                source: "The objective is that of the file of counts.".to_owned(),
            });
        }
        let objective = self.advice.get(&host)?.objective.as_ref().ok()?;
        Some(KnownObjective {
            quantile: objective.quantile,
            target: Readable(objective.target).to_string(),
            success_rate: Some(objective.success_rate),
            source: objective.reasoning().join(" "),
        })
    }

    /// Why the graph has no objective.
    pub(super) fn why_no_objective(&self, host: &str, namespace: &str) -> String {
        let host = qualified_host(host, namespace);
        let refusal = self
            .advice
            .get(&host)
            .and_then(|found| found.objective.as_ref().err());
        match (refusal, self.graph) {
            (Some(reason), _) => reason.to_string(),
            (None, Some(_)) => "the graph does not have it".to_owned(),
            (None, None) => "no graph was read".to_owned(),
        }
    }

    fn replicas(&self, host: &str) -> Option<u32> {
        let of_file = self.counts.get(host).and_then(|found| found.replicas);
        let of_service = || {
            let (name, namespace) = host.split_once('.')?;
            let found = self.cluster?.service(namespace, name)?;
            let all = found.endpoints.ready + found.endpoints.not_ready;
            (all > 0).then_some(all)
        };
        // Without endpoints, count the replicas of the workloads behind the service.
        let of_callees = || {
            let calls = self.advice.get(host)?.upstream.calls.iter();
            self.sum(calls.map(|call| call.callee).collect()).ok()
        };
        of_file
            .or_else(of_service)
            .or_else(of_callees)
            .or(self.fixed.replicas)
    }

    fn clients(&self, host: &str) -> Result<u32, String> {
        if let Some(clients) = self.counts.get(host).and_then(|found| found.clients) {
            return Ok(clients);
        }
        let expected =
            || format!("clients of {host} (--clients, --counts, or a graph with Kubernetes)");
        let of_graph = match self.advice.get(host) {
            None => Err(expected()),
            Some(found) => {
                let callers = found
                    .upstream
                    .calls
                    .iter()
                    .map(|call| call.caller)
                    .collect();
                self.sum(callers).map_err(|caller| {
                    format!("replicas of {caller}, a client of {host} (--clients, --counts, or Kubernetes)")
                })
            }
        };
        of_graph.or_else(|missing| self.fixed.clients.ok_or(missing))
    }

    /// The sum of the replicas of these vertices, or the first vertex without a number.
    fn sum(
        &self,
        keys: std::collections::BTreeSet<&tidegate_graph::VertexKey>,
    ) -> Result<u32, String> {
        let replicas = |key: &&tidegate_graph::VertexKey| {
            let graph = &self.graph?.graph;
            let vertex = graph.petgraph().node_weight(graph.find(key)?)?;
            vertex.kubernetes.as_ref()?.replicas
        };
        let counts = keys
            .iter()
            .map(|key| replicas(key).ok_or_else(|| key.to_string()));
        counts.sum::<Result<u32, String>>()
    }

    fn waypoints(&self, namespace: &str) -> Option<u32> {
        let found = || {
            self.cluster?
                .workload(namespace, self.waypoint)?
                .facts
                .replicas
        };
        found().or(self.fixed.waypoints)
    }
}
