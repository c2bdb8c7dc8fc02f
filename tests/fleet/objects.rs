//! Trials in object stores: servers that speak S3 or are as Azure's, and what may be wrong
//! with one.

use crate::synthetic::put;
use crate::tables::{ask, python, store, tool};
use crate::{PROGRAM, sample, sandbox};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use testkit::{Running, Sandbox, wait_until};

/// A server of objects on a port of its own; ended when dropped.
struct Server {
    _program: Running,
    address: String,
}

impl Server {
    /// What `command` makes of a port, once it listens.
    fn start(command: impl FnOnce(u16) -> Command) -> Self {
        // Whoever is given a port that is free may lose it before the server has it.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut command = command(port);
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let program = Running::start(&mut command);
        let address = format!("127.0.0.1:{port}");
        wait_until(&format!("nobody listens on {address}"), || {
            TcpStream::connect(&address).is_ok()
        });
        Self {
            _program: program,
            address,
        }
    }

    /// moto, which looks at credentials after the first `open` requests.
    fn moto(python: &Path, open: u32) -> Self {
        Self::start(|port| {
            let mut command = Command::new(python);
            command
                .args(["-m", "moto.server", "-H", "127.0.0.1", "-p"])
                .arg(port.to_string())
                .env("INITIAL_NO_AUTH_ACTION_COUNT", open.to_string());
            command
        })
    }
}

/// The program with credentials for a server that speaks S3.
fn with(sandbox: &Sandbox, address: &str, id: &str, secret: &str, arguments: &[&str]) -> Output {
    assert!(Path::new(PROGRAM).is_file());
    sandbox
        .cryptmark(arguments)
        .env("AWS_ENDPOINT_URL", format!("http://{address}"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", id)
        .env("AWS_SECRET_ACCESS_KEY", secret)
        .output()
        .unwrap()
}

/// Two lines with exit code 1 and this word.
fn refused(output: &Output, word: &str) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(told.trim_end().lines().count(), 2, "{told}");
    assert!(told.contains(word) && !told.contains("s3cret"), "{told}");
}

#[test]
fn a_bucket_is_a_folder_elsewhere() {
    let Some(python) = python() else { return };
    let sandbox = sandbox();
    put(&store(&sandbox, "host"), &sample::run());
    put(
        &store(&sandbox, "host"),
        &lab::record::Run {
            run: "20261122-b".into(),
            ..sample::many(20, 10)
        },
    );
    // Four requests make a user, what it may do, its key and a bucket.
    let server = Server::moto(&python, 4);
    let key = ask(
        &python,
        &sandbox,
        "
import boto3
to = dict(endpoint_url=given, region_name='us-east-1', aws_access_key_id='x', aws_secret_access_key='x')
iam = boto3.client('iam', **to)
iam.create_user(UserName='lab')
iam.put_user_policy(UserName='lab', PolicyName='all', PolicyDocument=json.dumps({
  'Version': '2012-10-17', 'Statement': [{'Effect': 'Allow', 'Action': 's3:*', 'Resource': '*'}]}))
key = iam.create_access_key(UserName='lab')['AccessKey']
boto3.client('s3', **to).create_bucket(Bucket='lab')
print(json.dumps([key['AccessKeyId'], key['SecretAccessKey']]))",
        &json!(format!("http://{}", server.address)),
    );
    let (id, secret) = (key[0].as_str().unwrap(), key[1].as_str().unwrap());
    let export = |id: &str, secret: &str, place: &str| {
        let arguments = ["export", "--parquet", place];
        with(&sandbox, &server.address, id, secret, &arguments)
    };
    for _ in 0..2 {
        let output = export(id, secret, "s3://lab/a/b");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
    }
    let listed = ask(
        &python,
        &sandbox,
        "
import boto3
s3 = boto3.client('s3', endpoint_url=given[0], region_name='us-east-1', aws_access_key_id=given[1],
  aws_secret_access_key=given[2])
print(json.dumps([object['Key'] for object in s3.list_objects_v2(Bucket='lab')['Contents']]))",
        &json!([format!("http://{}", server.address), id, secret]),
    );
    let many = "a/b/date=2026-11-21/plan=many/20261122-b.parquet";
    assert_eq!(listed, json!([many, &of_sample("a/b")]));

    #[cfg(feature = "fleet-report")]
    {
        let arguments = ["fleet", "report", "s3://lab/a/b", "--json"];
        let output = with(&sandbox, &server.address, id, secret, &arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["runs"], 2);
        assert_eq!(report["place"], "s3://lab/a/b");
        let arguments = ["fleet", "report", "s3://nobody/a"];
        let output = with(&sandbox, &server.address, id, secret, &arguments);
        refused(&output, "s3://nobody/a does not exist");
        let arguments = ["fleet", "report", "s3://lab/a/b"];
        let output = with(&sandbox, &server.address, id, "s3cret", &arguments);
        refused(&output, "refuses access to this user");
    }
    refused(
        &export(id, "s3cret", "s3://lab/a"),
        "refuses access to this user",
    );
    refused(
        &export("AKIANOBODY", "s3cret", "s3://lab/a"),
        "refuses access to this user",
    );
    refused(
        &export(id, secret, "s3://nobody/a"),
        "s3://nobody/a does not exist",
    );
    drop(server);
}

/// What S3 says of a token whose time is over: 400, and only words tell why.
#[test]
fn expired_credentials_are_told_as_such() {
    let sandbox = sandbox();
    put(&store(&sandbox, "host"), &sample::run());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // All of the request, so that closing does not reset the connection.
            stream
                .set_read_timeout(Some(Duration::from_millis(300)))
                .unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
            let body = "<?xml version=\"1.0\"?>\n<Error><Code>ExpiredToken</Code>\n\
                        <Message>The provided token has expired.</Message></Error>";
            let head = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length:";
            let _ = write!(stream, "{head} {}\r\n\r\n{body}", body.len());
        }
    });
    let export = ["export", "--parquet", "s3://lab/a"];
    let output = with(&sandbox, &address, "id", "s3cret", &export);
    refused(&output, "refuses access to this user");
    refused(&output, "expired");
}

#[test]
fn a_server_that_is_away_is_told_soon() {
    let sandbox = sandbox();
    put(&store(&sandbox, "host"), &sample::run());
    // Nobody listens on a port that was just given back.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let export = ["export", "--parquet", "s3://lab/a"];
    let output = with(&sandbox, &address, "id", "s3cret", &export);
    refused(&output, "s3://lab/a failed");
    // Nothing says where the account is.
    let told = sandbox.fails(2, &["export", "--parquet", "az://lab/a"]);
    assert!(told.contains("cannot use az://lab/a"), "{told}");
}

/// Azure's store by Microsoft's own emulator, which checks signatures.
#[test]
#[ignore = "needs Azurite: cargo xtask install elsewhere"]
fn a_container_of_azure_is_a_folder_elsewhere() {
    // The account that every Azurite has, and its published key.
    const ACCOUNT: &str = "devstoreaccount1";
    const KEY: &str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    let azurite = tool(
        "elsewhere/azurite/node_modules/.bin/azurite-blob",
        "Azurite is not installed (npm: azurite)",
    );
    let python = tool(
        "elsewhere/bin/python",
        "Azure's own client is not installed (PyPI: azure-storage-blob)",
    );
    let (Some(azurite), Some(python)) = (azurite, python) else {
        return;
    };
    let sandbox = sandbox();
    put(&store(&sandbox, "host"), &sample::run());
    let kept = sandbox.path("kept");
    let server = Server::start(|port| {
        let mut command = Command::new(azurite);
        command
            .args(["--silent", "--skipApiVersionCheck", "--blobHost"])
            .args(["127.0.0.1", "--blobPort", &port.to_string(), "--location"])
            .arg(kept);
        command
    });
    let endpoint = format!("http://{}/{ACCOUNT}", server.address);
    let client = format!(
        "
from azure.storage.blob import BlobServiceClient
client = BlobServiceClient.from_connection_string(
  'DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint};')
"
    );
    let make = format!("{client}client.create_container('lab')\nprint('null')");
    ask(&python, &sandbox, &make, &json!(null));
    let export = |key: &str, place: &str| {
        sandbox
            .cryptmark(&["export", "--parquet", place])
            .env("AZURE_STORAGE_ENDPOINT", &endpoint)
            .env("AZURE_ALLOW_HTTP", "true")
            .env("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
            .env("AZURE_STORAGE_ACCOUNT_KEY", key)
            .output()
            .unwrap()
    };
    for _ in 0..2 {
        let output = export(KEY, "az://lab/a/b");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
    }
    let list = format!(
        "{client}container = client.get_container_client('lab')
print(json.dumps([[blob.name, container.download_blob(blob.name).readall()[-4:].decode()]
  for blob in container.list_blobs()]))"
    );
    let listed = ask(&python, &sandbox, &list, &json!(null));
    assert_eq!(listed, json!([[of_sample("a/b"), "PAR1"]]));

    // Base64 of "s3cret", which the account does not have.
    let told = export("czNjcmV0", "az://lab/a");
    refused(&told, "refuses access to this user");
    refused(
        &export(KEY, "az://nobody/a"),
        "az://nobody/a does not exist",
    );
}

/// Where the sample's trials are below a place.
fn of_sample(place: &str) -> String {
    let run = sample::run();
    format!(
        "{place}/date=2026-11-21/plan={}/{}.parquet",
        run.plan, run.run
    )
}
