//! Reports on many hosts: queries over exported trials, by DataFusion.
//!
//! Each query reads only the columns it needs, file after file. Intermediate results that do not
//! fit into [`MEMORY`] go to the folder for temporary files.

mod sql;

use crate::{FleetError, Storage, columns};
use ::report::fleet::{Breakdown, FleetReport, Outlier, Outliers, Quantiles, Regression};
use datafusion::arrow::json::ArrayWriter;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::runtime::Builder;
use url::Url;

/// Bytes that queries may hold.
pub const MEMORY: usize = 1 << 30;

/// Where the queries find whatever storage there is.
const ROOT: &str = "cryptmark://trials/";

/// Reports on the trials in a place.
///
/// # Errors
/// Those of the place; [`FleetError::Empty`], [`FleetError::Foreign`],
/// [`FleetError::Newer`], [`FleetError::Query`].
pub fn of(storage: &Storage) -> Result<FleetReport, FleetError> {
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| FleetError::Runtime { source })?;
    runtime.block_on(async {
        let context = open(storage).map_err(|error| told(storage, error))?;
        match ask(&context, storage).await {
            // A foreign file is the likeliest reason.
            Err(error @ FleetError::Query { .. }) => {
                Err(foreign(&context, storage).await?.unwrap_or(error))
            }
            outcome => outcome,
        }
    })
}

/// The SQL statements over a table `trials`, in the order of the report. They are the view of
/// compared trials, the extent of the data, and the overhead by each property. Then come the table
/// that numbers each kind of similar trials, the view of trials by that number, outliers, and
/// regressions.
pub fn statements() -> Vec<String> {
    let mut statements = vec![sql::COMPARED.to_owned(), sql::EXTENT.to_owned()];
    let properties = sql::PROPERTIES.iter();
    statements.extend(properties.map(|(_, column)| sql::quantiles(column)));
    statements.extend([sql::alike(), sql::numbered()]);
    statements.extend([sql::outliers(), sql::regressions()]);
    statements
}

fn open(storage: &Storage) -> Result<SessionContext, DataFusionError> {
    let mut config = SessionConfig::new().with_collect_statistics(false);
    config
        .options_mut()
        .execution
        .listing_table_ignore_subdirectory = false;
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(MEMORY)))
        .build_arc()?;
    let context = SessionContext::new_with_config_rt(config, runtime);
    let root = Url::parse(ROOT).map_err(|error| DataFusionError::External(error.into()))?;
    context.register_object_store(&root, Arc::clone(&storage.store));
    let options =
        ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension(".parquet");
    let table = ListingTableConfig::new(ListingTableUrl::try_new(root, None)?)
        .with_listing_options(options)
        .with_schema(columns::schema());
    context.register_table("trials", Arc::new(ListingTable::try_new(table)?))?;
    Ok(context)
}

/// How much there is.
#[derive(Deserialize)]
struct Extent {
    trials: u64,
    runs: u64,
    compared: u64,
    /// Rows of files that have not even the first column.
    strange: u64,
    #[serde(default)]
    version: u64,
}

/// An outlier, and how many there are.
#[derive(Deserialize)]
struct Found {
    #[serde(flatten)]
    outlier: Outlier,
    found: u64,
}

async fn ask(context: &SessionContext, storage: &Storage) -> Result<FleetReport, FleetError> {
    let place = storage.place.clone();
    let failed = |error| told(storage, error);
    rows::<()>(context, sql::COMPARED).await.map_err(failed)?;
    let extent: Vec<Extent> = rows(context, sql::EXTENT).await.map_err(failed)?;
    let Some(extent) = extent.into_iter().next().filter(|extent| extent.trials > 0) else {
        return Err(FleetError::Empty { place });
    };
    if extent.strange > 0
        && let Some(error) = foreign(context, storage).await?
    {
        return Err(error);
    }
    if extent.version > columns::SCHEMA_VERSION {
        return Err(FleetError::Newer {
            place,
            found: extent.version,
            known: columns::SCHEMA_VERSION,
        });
    }
    let mut overhead = Vec::new();
    for (by, column) in sql::PROPERTIES {
        let groups: Vec<Quantiles> = rows(context, &sql::quantiles(column))
            .await
            .map_err(failed)?;
        overhead.push(Breakdown {
            by: (*by).to_owned(),
            groups,
        });
    }
    for made in [sql::alike(), sql::numbered()] {
        rows::<()>(context, &made).await.map_err(failed)?;
    }
    let farthest: Vec<Found> = rows(context, &sql::outliers()).await.map_err(failed)?;
    let regressions: Vec<Regression> = rows(context, &sql::regressions()).await.map_err(failed)?;
    Ok(FleetReport {
        place,
        trials: extent.trials,
        runs: extent.runs,
        compared: extent.compared,
        overhead,
        outliers: Outliers {
            found: farthest.first().map_or(0, |first| first.found),
            farthest: farthest.into_iter().map(|found| found.outlier).collect(),
        },
        regressions,
    })
}

/// The rows of a query, by the names of its columns.
async fn rows<T: DeserializeOwned>(
    context: &SessionContext,
    sql: &str,
) -> Result<Vec<T>, DataFusionError> {
    let batches = context.sql(sql).await?.collect().await?;
    let mut writer = ArrayWriter::new(Vec::new());
    for batch in &batches {
        writer.write(batch)?;
    }
    writer.finish()?;
    serde_json::from_slice(&writer.into_inner())
        .map_err(|error| DataFusionError::External(error.into()))
}

/// The first object that is not ours, where there is one.
async fn foreign(
    context: &SessionContext,
    storage: &Storage,
) -> Result<Option<FleetError>, FleetError> {
    let (format, state) = (ParquetFormat::default(), context.state());
    let refused = |source| FleetError::of(&storage.place, source);
    let mut objects = storage.store.list(None);
    while let Some(object) = objects.try_next().await.map_err(refused)? {
        if object.location.extension() != Some("parquet") {
            continue;
        }
        let name = object.location.to_string();
        match format.infer_schema(&state, &storage.store, &[object]).await {
            Ok(schema) if schema.field_with_name("schema_version").is_ok() => {}
            Err(DataFusionError::ObjectStore(refusal)) => return Err(refused(*refusal)),
            _ => {
                return Ok(Some(FleetError::Foreign {
                    place: storage.place.clone(),
                    object: name,
                }));
            }
        }
    }
    Ok(None)
}

/// The error of a failed query; an error of the storage names the place.
fn told(storage: &Storage, error: DataFusionError) -> FleetError {
    let place = storage.place.clone();
    match error {
        DataFusionError::ObjectStore(refusal) => FleetError::of(&place, *refusal),
        DataFusionError::Context(_, error) => told(storage, *error),
        error => FleetError::Query {
            place,
            source: Box::new(error),
        },
    }
}
