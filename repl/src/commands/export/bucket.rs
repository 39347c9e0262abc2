//! A bucket of an object store and the requests that an export makes to it, by the protocol of Amazon S3. Refusals become
//! errors that say what to do.

use std::sync::Arc;
use std::time::Duration;

use rusty_s3::actions::{CompleteMultipartUpload, CreateMultipartUpload, ListObjectsV2};
use rusty_s3::{Bucket as Address, Credentials, Method, S3Action};

use super::mark::Mark;
use super::request::{Channel, Failure, Reply};
use super::settings::{Settings, settings};
use crate::error::Error;

/// How long a signed address is valid.
const GOOD_FOR: Duration = Duration::from_secs(900);

/// How many parts an object can have.
const MOST_PARTS: u16 = 10_000;

/// A bucket, and the prefix of all keys below which an export writes.
pub struct Bucket {
    address: Address,
    credentials: Credentials,
    endpoint: String,
    prefix: String,
    channel: Channel,
}

impl Bucket {
    /// Opens `BUCKET/PREFIX` with the settings of the environment; sends nothing to the store yet. Takes over Ctrl-C,
    /// SIGTERM and SIGHUP.
    ///
    /// # Errors When the environment has no credentials, or a name is invalid.
    pub fn open(place: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Bucket, Error> {
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_matches('/');
        if prefix.split('/').any(|part| part == "." || part == "..") {
            let message = format!("the prefix {prefix} has a part that is . or ..");
            let help = "names in a bucket are no paths: leave it out";
            return Err(Error::usage(message, Some(help.to_owned())));
        }
        let Settings {
            bucket: address,
            credentials,
            roots,
            endpoint,
        } = settings(bucket, variable)?;
        Ok(Bucket {
            address,
            credentials,
            endpoint,
            prefix: match prefix.is_empty() {
                true => String::new(),
                false => format!("{prefix}/"),
            },
            channel: Channel::open(roots.as_deref())?,
        })
    }

    /// Returns the name of an object as messages show it.
    pub fn name(&self, key: &str) -> String {
        format!("s3://{}/{}{key}", self.address.name(), self.prefix)
    }

    /// Returns whether there is an object.
    ///
    /// # Errors When the store does not answer that, or a signal comes.
    pub fn has(&mut self, key: &str) -> Result<bool, Error> {
        let name = self.name(key);
        let key = format!("{}{key}", self.prefix);
        // A list request, because its refusals give a reason, unlike those of a request for one object.
        let mut list = self.address.list_objects_v2(Some(&self.credentials));
        list.with_prefix(key.as_str());
        list.with_max_keys(1);
        let sign = || list.sign(GOOD_FOR).into();
        let reply = self.channel.send(Method::Get, &Arc::default(), sign);
        let reply = self.accepted(reply, &name)?;
        let found = ListObjectsV2::parse_response(&reply.text);
        let found = found.map_err(|_| self.strange(&name))?;
        Ok(found.contents.iter().any(|object| object.key == key))
    }

    /// Writes an object.
    ///
    /// # Errors
    /// When the store does not accept it, or a signal comes.
    pub fn put(&mut self, key: &str, bytes: &Arc<Vec<u8>>) -> Result<(), Error> {
        let name = self.name(key);
        let key = format!("{}{key}", self.prefix);
        let put = self.address.put_object(Some(&self.credentials), &key);
        let sign = || put.sign(GOOD_FOR).into();
        let reply = self.channel.send(Method::Put, bytes, sign);
        self.accepted(reply, &name).map(drop)
    }

    /// Begins an object of several parts and returns the number of the upload.
    ///
    /// # Errors
    /// When the store refuses, or a signal comes.
    pub fn begin(&mut self, key: &str) -> Result<String, Error> {
        let name = self.name(key);
        let key = format!("{}{key}", self.prefix);
        let create = self
            .address
            .create_multipart_upload(Some(&self.credentials), &key);
        let sign = || create.sign(GOOD_FOR).into();
        let reply = self.channel.send(Method::Post, &Arc::default(), sign);
        let reply = self.accepted(reply, &name)?;
        let found = CreateMultipartUpload::parse_response(&reply.text);
        let found = found.map_err(|_| self.strange(&name))?;
        Ok(found.upload_id().to_owned())
    }

    /// Writes a part, the first is 1, and returns its tag.
    ///
    /// # Errors
    /// When the store does not accept it, or a signal comes.
    pub fn part(
        &mut self,
        key: &str,
        id: &str,
        number: usize,
        bytes: &Arc<Vec<u8>>,
    ) -> Result<String, Error> {
        let name = self.name(key);
        let key = format!("{}{key}", self.prefix);
        let Some(number) = u16::try_from(number).ok().filter(|n| *n <= MOST_PARTS) else {
            let message = format!("{name} is larger than an object can be");
            let help = Some("export it to a folder".to_owned());
            return Err(Error::Remote { message, help });
        };
        let part = self
            .address
            .upload_part(Some(&self.credentials), &key, number, id);
        let sign = || part.sign(GOOD_FOR).into();
        let reply = self.channel.send(Method::Put, bytes, sign);
        let reply = self.accepted(reply, &name)?;
        reply.etag.ok_or_else(|| self.strange(&name))
    }

    /// Completes an object from its parts.
    ///
    /// # Errors
    /// When the store refuses, or a signal comes.
    pub fn complete(&mut self, key: &str, id: &str, tags: &[String]) -> Result<(), Error> {
        let name = self.name(key);
        let full = format!("{}{key}", self.prefix);
        let action = || {
            let tags = tags.iter().map(String::as_str);
            CompleteMultipartUpload::new(&self.address, Some(&self.credentials), &full, id, tags)
        };
        let body = Arc::new(action().body().into_bytes());
        let sign = || action().sign(GOOD_FOR).into();
        let reply = self.channel.send(Method::Post, &body, sign);
        // It is complete if an earlier attempt succeeded and only its answer was lost.
        if matches!(&reply, Ok(reply) if reply.code() == Some("NoSuchUpload")) && self.has(key)? {
            return Ok(());
        }
        self.accepted(reply, &name).map(drop)
    }

    /// Discards the parts of an object, as far as possible.
    pub fn abort(&mut self, key: &str, id: &str) {
        let key = format!("{}{key}", self.prefix);
        let abort = self
            .address
            .abort_multipart_upload(Some(&self.credentials), &key, id);
        self.channel.clean(|| abort.sign(GOOD_FOR).into());
    }

    /// Removes what a killed export has left of a run, which the object `mark` names.
    ///
    /// # Errors
    /// When an export of the run is under way, or may be; or the store refuses.
    pub fn clear(&mut self, mark: &str) -> Result<(), Error> {
        if !self.has(mark)? {
            return Ok(());
        }
        let name = self.name(mark);
        let text = self.text(mark)?;
        let Some(left) = Mark::read(&text) else {
            let message = format!("{name} does not say what an export has left");
            return Err(Error::usage(message, Some("remove it".to_owned())));
        };
        if !left.is_left() {
            let message = format!("{} exports this run, or did so: {name}", left.writer());
            let help =
                "wait for its end; if it was killed, remove that object and those that it names";
            return Err(Error::usage(message, Some(help.to_owned())));
        }
        for key in &left.keys {
            self.delete(key)?;
        }
        self.delete(mark)
    }

    /// Returns the text of an object.
    fn text(&mut self, key: &str) -> Result<String, Error> {
        let name = self.name(key);
        let key = format!("{}{key}", self.prefix);
        let get = self.address.get_object(Some(&self.credentials), &key);
        let sign = || get.sign(GOOD_FOR).into();
        let reply = self.channel.send(Method::Get, &Arc::default(), sign);
        Ok(self.accepted(reply, &name)?.text)
    }

    /// Removes an object, if there is one.
    ///
    /// # Errors
    /// When the store refuses, or a signal comes.
    pub fn delete(&mut self, key: &str) -> Result<(), Error> {
        let name = self.name(key);
        let key = format!("{}{key}", self.prefix);
        let delete = self.address.delete_object(Some(&self.credentials), &key);
        let sign = || delete.sign(GOOD_FOR).into();
        match self.channel.send(Method::Delete, &Arc::default(), sign) {
            // Amazon's store does not mind, but others do.
            Ok(reply) if reply.status == 404 && reply.code() == Some("NoSuchKey") => Ok(()),
            reply => self.accepted(reply, &name).map(drop),
        }
    }

    /// Removes objects, as far as possible.
    pub fn remove(&mut self, keys: &[String]) {
        for key in keys {
            let key = format!("{}{key}", self.prefix);
            let delete = self.address.delete_object(Some(&self.credentials), &key);
            self.channel.clean(|| delete.sign(GOOD_FOR).into());
        }
    }

    /// Turns everything but success into an error.
    fn accepted(&self, reply: Result<Reply, Failure>, name: &str) -> Result<Reply, Error> {
        match reply {
            Ok(reply) if (200..300).contains(&reply.status) && reply.code().is_none() => Ok(reply),
            Ok(reply) => {
                let (why, help) = refusal(&reply, self.address.name());
                Err(Error::Remote {
                    message: format!("{name} cannot be used: {why}"),
                    help: Some(help),
                })
            }
            Err(Failure::Other(error)) => Err(error),
            Err(Failure::Unreachable(why)) => Err(Error::Remote {
                message: format!("no answer from {}: {why}", self.endpoint),
                help: Some(
                    "check AWS_ENDPOINT_URL or AWS_REGION, the network, and HTTPS_PROXY; \
                     AWS_CA_BUNDLE names a file with other certificates to trust"
                        .to_owned(),
                ),
            }),
        }
    }

    fn strange(&self, name: &str) -> Error {
        Error::Remote {
            message: format!(
                "{name}: {} does not answer as an object store",
                self.endpoint
            ),
            help: Some("check AWS_ENDPOINT_URL".to_owned()),
        }
    }
}

/// Returns the message of a refusal, and what to do about it.
fn refusal(reply: &Reply, bucket: &str) -> (String, String) {
    let told = reply.field("Message").unwrap_or("it says no more");
    let region = reply.region.as_deref().or(reply.field("Region"));
    match (reply.status, reply.code(), region) {
        (_, Some("NoSuchBucket"), _) => (
            format!("there is no bucket {bucket}"),
            "make it first, or check its name, AWS_REGION and AWS_ENDPOINT_URL".to_owned(),
        ),
        (301 | 307 | 400, _, Some(region)) => (
            format!("the bucket is in the region {region}"),
            format!("set AWS_REGION={region}"),
        ),
        (_, Some("InvalidAccessKeyId"), _) => (
            "AWS_ACCESS_KEY_ID is not known there".to_owned(),
            "check it, and AWS_ENDPOINT_URL: keys are good for one store".to_owned(),
        ),
        (_, Some("SignatureDoesNotMatch"), _) => (
            "AWS_SECRET_ACCESS_KEY does not belong to AWS_ACCESS_KEY_ID".to_owned(),
            "check both, and AWS_REGION".to_owned(),
        ),
        (_, Some("ExpiredToken" | "InvalidToken" | "TokenRefreshRequired"), _) => (
            format!("AWS_SESSION_TOKEN is not good any more ({told})"),
            "get new credentials: eval \"$(aws configure export-credentials --format env)\""
                .to_owned(),
        ),
        (_, Some("RequestTimeTooSkewed"), _) => (
            "this machine's clock is wrong".to_owned(),
            "set the clock: requests are signed with the time".to_owned(),
        ),
        (401 | 403, code, _) => (
            format!("access denied ({}: {told})", code.unwrap_or("no code")),
            format!(
                "the key needs s3:ListBucket for {bucket}, and for its objects s3:PutObject, s3:GetObject, \
                 s3:DeleteObject and s3:AbortMultipartUpload"
            ),
        ),
        (status, code, _) => (
            format!(
                "the store answered {status} ({}: {told})",
                code.unwrap_or("no code")
            ),
            "nothing of this recording was left there; try again".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, text: &str) -> (String, String) {
        let reply = Reply {
            status,
            text: text.to_owned(),
            ..Reply::default()
        };
        refusal(&reply, "lake")
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let error = |code: &str| {
            format!(
                "<?xml?><Error><Code>{code}</Code><Message>No.</Message><Region>eu</Region></Error>"
            )
        };
        let plain = |code: &str| error(code).replace("<Region>eu</Region>", "");
        for (status, text, why, help) in [
            (
                404,
                error("NoSuchBucket"),
                "no bucket lake",
                "make it first",
            ),
            (
                403,
                error("InvalidAccessKeyId"),
                "is not known there",
                "good for one store",
            ),
            (
                403,
                error("SignatureDoesNotMatch"),
                "does not belong",
                "check both",
            ),
            (
                403,
                error("ExpiredToken"),
                "any more (No.)",
                "aws configure",
            ),
            (
                403,
                error("RequestTimeTooSkewed"),
                "clock is wrong",
                "set the clock",
            ),
            (
                403,
                error("AccessDenied"),
                "access denied (AccessDenied: No.)",
                "s3:ListBucket for lake",
            ),
            (
                301,
                error("PermanentRedirect"),
                "in the region eu",
                "AWS_REGION=eu",
            ),
            (
                400,
                error("AuthorizationHeaderMalformed"),
                "in the region eu",
                "AWS_REGION=eu",
            ),
            (
                400,
                plain("EntityTooSmall"),
                "400 (EntityTooSmall: No.)",
                "try again",
            ),
            (
                502,
                "<html>".to_owned(),
                "502 (no code: it says no more)",
                "try again",
            ),
        ] {
            let told = refused(status, &text);
            assert!(told.0.contains(why), "{told:?}");
            assert!(told.1.contains(help), "{told:?}");
        }
    }

    #[test]
    fn the_prefix_is_put_before_keys() {
        let variable = |name: &str| {
            let known =
                name.ends_with("_KEY_ID") || name.ends_with("_KEY") || name.ends_with("_URL");
            known.then(|| "http://x".to_owned())
        };
        let name = |place: &str| Bucket::open(place, variable).unwrap().name("table=calls");
        assert_eq!(name("lake"), "s3://lake/table=calls");
        assert_eq!(name("lake/"), "s3://lake/table=calls");
        assert_eq!(name("lake/a/b/"), "s3://lake/a/b/table=calls");
        assert!(Bucket::open("lake/../a", variable).is_err());
    }
}
