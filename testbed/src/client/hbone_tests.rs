//! Tunnels through a minimal waypoint, which asks for a certificate and copies bytes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::hbone::Hbone;
use super::identity::Identity;
use super::{Call, CallError, Caller};
use crate::upstream::{Script, Upstream};

const WAYPOINT: &str = "spiffe://cluster.local/ns/shop/sa/waypoint";
const WEB: &str = "spiffe://cluster.local/ns/shop/sa/web";

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn identity(&self, name: &str) -> Identity {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params
            .subject_alt_names
            .push(SanType::URI(name.try_into().unwrap()));
        let key = KeyPair::generate().unwrap();
        Identity {
            chain: params.signed_by(&key, &self.0).unwrap().pem(),
            key: key.serialize_pem(),
            roots: self.0.pem(),
        }
    }
}

/// A minimal waypoint: its address, and how many connections it has accepted.
struct Waypoint {
    addr: SocketAddr,
    taken: Arc<AtomicUsize>,
}

impl Waypoint {
    async fn start(authority: &Authority) -> Self {
        let identity = authority.identity(WAYPOINT);
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(identity.roots.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(identity.chain.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let taken = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&taken);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                let counter = Arc::clone(&counter);
                tokio::spawn(async move {
                    // A client that is not trusted notices by itself.
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    counter.fetch_add(1, Ordering::SeqCst);
                    let mut server = http2::Builder::new(TokioExecutor::new());
                    server.max_concurrent_streams(100);
                    let _ = server
                        .serve_connection(TokioIo::new(stream), service_fn(tunnel))
                        .await;
                });
            }
        });
        Self { addr, taken }
    }
}

async fn tunnel(request: Request<Incoming>) -> hyper::Result<Response<Empty<Bytes>>> {
    let target: SocketAddr = request.uri().to_string().parse().unwrap();
    let mut response = Response::new(Empty::new());
    if request.method() != Method::CONNECT || target.port() == 1 {
        *response.status_mut() = StatusCode::FORBIDDEN;
        return Ok(response);
    }
    tokio::spawn(async move {
        let mut inside = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
        let mut outside = TcpStream::connect(target).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
    });
    Ok(response)
}

async fn upstream() -> Upstream {
    Upstream::constant("main", 1_000, Duration::ZERO)
        .await
        .unwrap()
}

#[tokio::test]
async fn calls_to_one_service_share_a_tunnel_and_its_connection() {
    let authority = Authority::new();
    let waypoint = Waypoint::start(&authority).await;
    let upstream = upstream().await;
    let way = Hbone::new(waypoint.addr, &authority.identity(WEB), WAYPOINT).unwrap();
    let caller = Caller::through(&way, upstream.addr());

    for _ in 0..5 {
        let reply = caller.get("/a").await.unwrap();
        assert_eq!(
            (reply.status, reply.header("x-upstream")),
            (200, Some("main"))
        );
    }

    assert_eq!(upstream.counts().received, 5);
    assert_eq!(waypoint.taken.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn more_tunnels_than_a_connection_takes_open_another_one() {
    let authority = Authority::new();
    let waypoint = Waypoint::start(&authority).await;
    let upstream = Upstream::builder("main")
        .script(|_| Some(Script::Hang))
        .start()
        .await
        .unwrap();
    let way = Hbone::new(waypoint.addr, &authority.identity(WEB), WAYPOINT).unwrap();
    let caller = Caller::through(&way, upstream.addr());

    let calls: Vec<_> = (0..101)
        .map(|_| {
            let caller = caller.clone();
            tokio::spawn(async move { caller.call(&Call::get("/")).await })
        })
        .collect();

    let all_there = async {
        while upstream.counts().concurrent < 101 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), all_there)
        .await
        .unwrap();
    assert_eq!(waypoint.taken.load(Ordering::SeqCst), 2);
    calls.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_tunnel_that_is_refused_says_what_the_waypoint_answered() {
    let authority = Authority::new();
    let waypoint = Waypoint::start(&authority).await;
    let way = Hbone::new(waypoint.addr, &authority.identity(WEB), WAYPOINT).unwrap();
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));

    let error = Caller::through(&way, nowhere).get("/").await.unwrap_err();

    assert!(
        matches!(error, CallError::Tunnel { service, status: 403 } if service == nowhere),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_waypoint_with_another_identity_or_root_is_not_believed() {
    let authority = Authority::new();
    let waypoint = Waypoint::start(&authority).await;
    let upstream = upstream().await;
    let strangers = Authority::new().identity(WEB);
    let own = authority.identity(WEB);
    let misled = Identity {
        roots: strangers.roots.clone(),
        ..own.clone()
    };
    for (identity, server) in [(&own, WEB), (&misled, WAYPOINT)] {
        let way = Hbone::new(waypoint.addr, identity, server).unwrap();
        let error = Caller::through(&way, upstream.addr()).get("/").await;
        assert!(
            matches!(error, Err(CallError::Connect { .. })),
            "{server}: {error:?}"
        );
    }
    assert_eq!(upstream.counts().received, 0);
}

#[tokio::test]
async fn a_workload_of_another_mesh_gets_no_tunnel() {
    let authority = Authority::new();
    let waypoint = Waypoint::start(&authority).await;
    let upstream = upstream().await;
    let identity = Identity {
        roots: authority.identity(WEB).roots,
        ..Authority::new().identity(WEB)
    };
    let way = Hbone::new(waypoint.addr, &identity, WAYPOINT).unwrap();

    assert!(
        Caller::through(&way, upstream.addr())
            .get("/")
            .await
            .is_err()
    );
    assert_eq!(upstream.counts().received, 0);
}

#[test]
fn what_is_no_identity_is_rejected_by_what_it_lacks() {
    let identity = Authority::new().identity(WEB);
    let keyless = Identity {
        key: "no key".to_owned(),
        ..identity.clone()
    };
    let addr = SocketAddr::from(([127, 0, 0, 1], 1));
    let error = Hbone::new(addr, &keyless, WAYPOINT).unwrap_err();
    assert_eq!(error.to_string(), "read the key");
    assert!(!format!("{identity:?}").contains("PRIVATE"));
}
