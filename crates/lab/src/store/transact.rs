//! One transaction, written once for both databases.

/// Runs a block of queries, written once, as one transaction on whichever
/// database is open. SQLite takes the write lock at the start (`write`): a
/// transaction that reads first and then finds another writer would fail
/// instead of waiting. On PostgreSQL the block has a connection of its own, and
/// runs again, as long as the store is patient, where the server was away or
/// another transaction in the way: it must not move what it uses.
macro_rules! transact {
    ($store:expr, write, $tx:ident => $body:expr) => {
        transact!($store, "BEGIN IMMEDIATE", "BEGIN", $tx => $body)
    };
    ($store:expr, read, $tx:ident => $body:expr) => {
        transact!($store, "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", $tx => $body)
    };
    ($store:expr, $sqlite:literal, $postgres:literal, $tx:ident => $body:expr) => {{
        use sqlx::Connection as _;
        let mut open = $store.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let $crate::store::Open { runtime, connection, .. } = &mut *open;
        let result: Result<_, $crate::store::Fault> = runtime.block_on(async {
            match connection {
                Some($crate::store::Connection::Sqlite(connection)) => {
                    let mut $tx = connection.begin_with($sqlite).await?;
                    let value = $body;
                    $tx.commit().await?;
                    Ok(value)
                }
                #[cfg(feature = "postgres")]
                Some($crate::store::Connection::Postgres(server)) => {
                    let mut patience = server.patience();
                    loop {
                        let attempt = server.limited(async {
                            let mut connection = server.connect().await?;
                            let mut $tx = connection.begin_with($postgres).await?;
                            let value = $body;
                            $tx.commit().await?;
                            // It is stored, whether or not the server hears a farewell.
                            let _ = connection.close().await;
                            Ok::<_, $crate::store::Fault>(value)
                        });
                        match attempt.await {
                            Err(fault) if fault.passes() && patience.wait().await => {}
                            outcome => break outcome,
                        }
                    }
                }
                None => Err($crate::store::Fault::Sql(sqlx::Error::WorkerCrashed)),
            }
        });
        result.map_err(|fault| fault.at(&$store.location))
    }};
}

pub(super) use transact;
