//! Queries a Ballista scheduler: the arguments are its URL and statements; the rows of each statement are printed as one line of JSON.
//! `ballista.py` builds it with the published scheduler and executor, because the published client does not support `s3://`.

use ballista::prelude::SessionContextExt;
use ballista_core::object_store::state_with_s3_support;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::JsonArray;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

#[tokio::main]
async fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let url = words.next().expect("the first word is the scheduler's URL");
    let context = SessionContext::remote_with_state(&url, state_with_s3_support()?).await?;
    for statement in words {
        let batches = context.sql(&statement).await?.collect().await?;
        let writer = WriterBuilder::new().with_explicit_nulls(true);
        let mut rows = writer.build::<_, JsonArray>(Vec::new());
        rows.write_batches(&batches.iter().collect::<Vec<_>>())?;
        rows.finish()?;
        println!("{}", String::from_utf8_lossy(&rows.into_inner()));
    }
    Ok(())
}
