//! `cryptmark report --serve`: the store in a browser on this machine.
//!
//! The store is its owner's alone, and other users of this machine reach loopback as
//! well: so the address has a secret in its path, which the owner reads on the
//! terminal. A page of another host that sends the user's browser here is refused by
//! what browsers say of themselves. Pages link to each other by relative addresses,
//! and tell nobody else where they are. No file is served: every page is made of
//! records.

use crate::cli::{Failure, print, stop_on_signal};
use ::report::compare::{self, CompareError, Options, compare};
use ::report::html;
use cipher::Key;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use lab::store::{Store, StoreError};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Connections at a time; more wait their turn.
const CONNECTIONS: usize = 256;
/// Pages in memory at a time, until the last byte is sent.
const PAGES: usize = 16;
/// Bytes of a request's head, at most.
const HEAD: usize = 16 << 10;
/// How long a client may take over its request.
const ASKING: Duration = Duration::from_secs(5);
/// How long a connection lasts in all: nobody keeps others waiting for ever.
const LASTING: Duration = Duration::from_secs(15);
/// How often the end is looked for.
const TICK: Duration = Duration::from_millis(100);

/// Serves until a signal.
///
/// # Errors
/// Exit code 1 where the port cannot be had.
pub fn serve(store: Store, port: u16) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let failed = |error: std::io::Error| {
        Failure::new(
            1,
            format!("cannot serve on port {port}: {error}"),
            "Give another --port, or none for any that is free.",
        )
    };
    let secret = secret()?;
    // Outlives the runtime: a store has one of its own, which ends outside of others.
    let store = Arc::new(store);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(2)
        .build()
        .map_err(failed)?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        print(&format!("http://{address}/{secret}/ until Ctrl-C\n"))?;
        let shelf = Arc::new(Shelf {
            store: Arc::clone(&store),
            address,
            secret,
            pages: Arc::new(Semaphore::new(PAGES)),
        });
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        while !stop.load(Ordering::Relaxed) {
            let next = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (place, listener.accept().await)
            };
            // Nobody came, or he was gone before he was let in.
            let Ok((Ok(place), Ok((stream, _)))) = timeout(TICK, next).await else {
                continue;
            };
            let shelf = Arc::clone(&shelf);
            tokio::spawn(async move {
                // A client who breaks off or takes too long is no concern of ours.
                let _ = timeout(LASTING, converse(stream, shelf)).await;
                drop(place);
            });
        }
        Ok(())
    })
}

/// What pages are made of.
struct Shelf {
    store: Arc<Store>,
    address: SocketAddr,
    /// The first folder of every address.
    secret: String,
    pages: Arc<Semaphore>,
}

/// A page that counts as in memory until it is dropped.
struct Page {
    text: String,
    _place: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// One request and its answer.
async fn converse(stream: TcpStream, shelf: Arc<Shelf>) -> Result<(), hyper::Error> {
    let answer = service_fn(|request| {
        let shelf = Arc::clone(&shelf);
        async move { Ok::<_, Infallible>(answer(&request, shelf).await) }
    });
    http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(ASKING)
        .serve_connection(TokioIo::new(stream), answer)
        .await
}

async fn answer(request: &Request<Incoming>, shelf: Arc<Shelf>) -> Response<Full<Bytes>> {
    if !is_for_us(request.uri(), request.headers(), shelf.address.port()) {
        let what = "This address is for a browser on this machine";
        let remedy = "Type in the address that cryptmark has printed.";
        return refusal(StatusCode::FORBIDDEN, what, remedy);
    }
    let Some(path) = path_behind(&shelf.secret, request.uri().path()) else {
        let what = "This address lacks the secret that cryptmark has printed";
        let remedy = "Type in the whole address.";
        return refusal(StatusCode::FORBIDDEN, what, remedy);
    };
    let path = path.to_owned();
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let what = "Pages can be read here, and nothing else";
        let mut refused = refusal(StatusCode::METHOD_NOT_ALLOWED, what, "Use GET or HEAD.");
        let allowed = HeaderValue::from_static("GET, HEAD");
        refused.headers_mut().insert(header::ALLOW, allowed);
        return refused;
    }
    let made = async {
        let place = Arc::clone(&shelf.pages).acquire_owned().await.ok()?;
        let address = request.uri().clone();
        // The store blocks, and a report takes its time.
        let made = tokio::task::spawn_blocking(move || {
            let (status, text) = asked(&path, address.query().unwrap_or_default(), &shelf.store);
            let page = Page {
                text,
                _place: place,
            };
            (status, Bytes::from_owner(page))
        });
        made.await.ok()
    };
    match made.await {
        Some((status, page)) => response(status, page),
        None => {
            let what = "This page could not be made";
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            refusal(status, what, "Report this with the run's id.")
        }
    }
}

/// Whether a browser was sent here by its user, and not by another host's page:
/// under our own name only, and from no other origin.
fn is_for_us(address: &Uri, headers: &HeaderMap, port: u16) -> bool {
    let names = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let ours = |name: &str| {
        // Browsers leave the usual port away.
        let name = match (port, name.contains(':')) {
            (80, false) => format!("{name}:80"),
            _ => name.to_owned(),
        };
        names.iter().any(|own| own.eq_ignore_ascii_case(&name))
    };
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().is_ok_and(ours),
        _ => false,
    };
    let authority = address.authority().is_none_or(|name| ours(name.as_str()));
    let origin = headers.get_all(header::ORIGIN).iter().all(|origin| {
        let origin = origin.to_str().ok();
        origin
            .and_then(|origin| origin.strip_prefix("http://"))
            .is_some_and(ours)
    });
    let site = headers.get_all("sec-fetch-site").iter();
    let site = site
        .into_iter()
        .all(|site| matches!(site.as_bytes(), b"none" | b"same-origin"));
    host && authority && origin && site
}

/// What nobody guesses: 128 bits as hexadecimal digits.
fn secret() -> Result<String, Failure> {
    let key = Key::random(16).map_err(|error| {
        let remedy = "See the kernel log (dmesg) for what is wrong with its random numbers.";
        Failure::new(1, error.to_string(), remedy)
    })?;
    let digits = key.as_bytes().iter().map(|byte| format!("{byte:02x}"));
    Ok(digits.collect())
}

/// What follows `/SECRET/` in a path; the time that it takes says nothing of how much
/// of the secret is right.
fn path_behind<'a>(secret: &str, path: &'a str) -> Option<&'a str> {
    let (given, rest) = path.strip_prefix('/')?.split_once('/')?;
    let pairs = given.bytes().zip(secret.bytes());
    let differences = pairs.fold(0, |found, (a, b)| found | (a ^ b));
    (given.len() == secret.len() && differences == 0).then_some(rest)
}

/// The page at an address behind the secret, with its status.
fn asked(path: &str, query: &str, store: &Store) -> (StatusCode, String) {
    let given: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    let value = |name: &str| {
        let found = given.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_ref())
    };
    let made = match path {
        "" => store.list().map(|runs| html::index(&runs, value("q"))),
        "run" => store.load(value("id")).map(|run| html::stored(&run)),
        "compare" => compared(store, value("a"), value("b"), value("across") == "yes"),
        _ => {
            let notice = html::notice("There is no such page", "Go back to the list.", Some("./"));
            return (StatusCode::NOT_FOUND, notice);
        }
    };
    match made {
        Ok(page) => (StatusCode::OK, page),
        Err(error @ (StoreError::NoSuchRun { .. } | StoreError::Ambiguous { .. })) => {
            let notice = html::notice(&error.to_string(), "Choose it from the list.", Some("./"));
            (StatusCode::NOT_FOUND, notice)
        }
        Err(error) => {
            // Its words may name files, which are for who started the server.
            let _ = Failure::from(error).print();
            let what = "The store cannot be read";
            let remedy = "The terminal where cryptmark runs says why.";
            let notice = html::notice(what, remedy, None);
            (StatusCode::INTERNAL_SERVER_ERROR, notice)
        }
    }
}

fn compared(store: &Store, a: &str, b: &str, across: bool) -> Result<String, StoreError> {
    let (first, second) = (store.load(a)?, store.load(b)?);
    let options = Options {
        across_machines: across,
        ..Options::default()
    };
    Ok(match compare(&first, &second, &options) {
        Ok(comparison) => compare::html(&comparison),
        Err(error @ CompareError::Environment { .. }) => {
            let query = form_urlencoded::Serializer::new(String::new())
                .extend_pairs([("a", a), ("b", b), ("across", "yes")])
                .finish();
            let address = format!("compare?{query}");
            html::notice(
                &error.to_string(),
                "Compare them nevertheless.",
                Some(&address),
            )
        }
        Err(error) => html::notice(&error.to_string(), error.remedy(), None),
    })
}

fn refusal(status: StatusCode, what: &str, remedy: &str) -> Response<Full<Bytes>> {
    response(status, html::notice(what, remedy, None).into())
}

fn response(status: StatusCode, page: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(page));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // The page itself says what it may load; who may show it, only this can.
        (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(
        "cross-origin-resource-policy",
        HeaderValue::from_static("same-origin"),
    );
    response
}
