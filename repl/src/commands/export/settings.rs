//! The settings of an object store in the environment: the standard variables of AWS, as its own command line reads
//! them.

use rusty_s3::{Bucket, BucketError, Credentials, UrlStyle};

use crate::error::Error;

/// The default region, which other vendors' stores also expect.
const DEFAULT_REGION: &str = "us-east-1";

/// What is needed to ask a bucket.
pub struct Settings {
    pub bucket: Bucket,
    pub credentials: Credentials,
    /// The file with the certificates to trust instead of Mozilla's.
    pub roots: Option<String>,
    /// Where it is, for messages.
    pub endpoint: String,
}

/// Reads the settings for a bucket; `variable` returns the value of an environment variable.
///
/// # Errors When there are no credentials, or the bucket or the endpoint is invalid.
pub fn settings(
    bucket: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Settings, Error> {
    // An empty variable counts as unset: scripts unset variables this way.
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    check_name(bucket)?;
    let region = variable("AWS_REGION")
        .or_else(|| variable("AWS_DEFAULT_REGION"))
        .unwrap_or_else(|| DEFAULT_REGION.to_owned());
    let custom = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
    let endpoint = match &custom {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => amazon(&region),
    };
    // Amazon's certificate covers only one more level of names.
    let style = match custom.is_some() || bucket.contains('.') {
        true => UrlStyle::Path,
        false => UrlStyle::VirtualHost,
    };
    let given = custom.as_deref().unwrap_or(&endpoint);
    let wrong = |why: &str| {
        Error::usage(
            format!("AWS_ENDPOINT_URL is no address of an object store: {given}: {why}"),
            Some("write it like https://host:9000".to_owned()),
        )
    };
    let url = format!("{endpoint}/").parse();
    let url = url.map_err(|_| wrong("it cannot be read"))?;
    let found = Bucket::new(url, style, bucket.to_owned(), region);
    let found = found.map_err(|error| match error {
        BucketError::UnsupportedScheme => wrong("it begins with neither http:// nor https://"),
        BucketError::MissingHost | BucketError::ParseError(_) => wrong("it names no host"),
    })?;
    Ok(Settings {
        bucket: found,
        credentials: credentials(variable)?,
        roots: variable("AWS_CA_BUNDLE").or_else(|| variable("SSL_CERT_FILE")),
        endpoint,
    })
}

fn amazon(region: &str) -> String {
    let domain = match region.starts_with("cn-") {
        true => "amazonaws.com.cn",
        false => "amazonaws.com",
    };
    format!("https://s3.{region}.{domain}")
}

fn credentials(variable: impl Fn(&str) -> Option<String>) -> Result<Credentials, Error> {
    let needed = |name: &str| {
        variable(name).ok_or_else(|| {
            let help = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; those of a profile are set by: \
                        eval \"$(aws configure export-credentials --format env)\"";
            Error::usage(
                format!("there are no credentials for the object store: {name} is not set"),
                Some(help.to_owned()),
            )
        })
    };
    let (key, secret) = (
        needed("AWS_ACCESS_KEY_ID")?,
        needed("AWS_SECRET_ACCESS_KEY")?,
    );
    Ok(match variable("AWS_SESSION_TOKEN") {
        Some(token) => Credentials::new_with_token(key, secret, token),
        None => Credentials::new(key, secret),
    })
}

/// Refuses an invalid bucket name before it becomes part of an address.
fn check_name(bucket: &str) -> Result<(), Error> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_name = bucket.len() >= 3
        && bucket.bytes().all(is_plain)
        && bucket.starts_with(|first: char| first.is_ascii_alphanumeric());
    match is_name {
        true => Ok(()),
        false => Err(Error::usage(
            format!("{bucket:?} is no name of a bucket"),
            Some("write the target as s3://BUCKET/PREFIX".to_owned()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bucket: &str, variables: &[(&str, &str)]) -> Result<Settings, Error> {
        settings(bucket, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "k"), ("AWS_SECRET_ACCESS_KEY", "s")];

    fn url(bucket: &str, more: &[(&str, &str)]) -> String {
        let found = read(bucket, &[&KEYS[..], more].concat()).unwrap();
        found.bucket.base_url().to_string()
    }

    #[test]
    fn the_address_follows_from_region_and_endpoint() {
        assert_eq!(url("lake", &[]), "https://lake.s3.us-east-1.amazonaws.com/");
        let default = ("AWS_DEFAULT_REGION", "cn-north-1");
        assert_eq!(
            url("lake", &[default]),
            "https://lake.s3.cn-north-1.amazonaws.com.cn/"
        );
        let region = ("AWS_REGION", "eu-west-1");
        assert_eq!(
            url("a.lake", &[default, region]),
            "https://s3.eu-west-1.amazonaws.com/a.lake/"
        );
        let both = [
            ("AWS_ENDPOINT_URL", "http://other"),
            ("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:5000/base/"),
        ];
        assert_eq!(url("lake", &both), "http://127.0.0.1:5000/base/lake/");
        assert_eq!(url("lake", &both[..1]), "http://other/lake/");
    }

    #[test]
    fn what_is_missing_or_wrong_is_said() {
        let missing = read("lake", &[KEYS[0], ("AWS_SECRET_ACCESS_KEY", "")]);
        let missing = missing.err().unwrap();
        assert!(
            missing
                .to_string()
                .ends_with("AWS_SECRET_ACCESS_KEY is not set")
        );
        assert!(missing.help().unwrap().contains("aws configure"));
        for name in ["", "ab", "a lake", "-lake", "lake?x"] {
            let wrong = read(name, &KEYS).err().unwrap();
            assert_eq!(
                wrong.to_string(),
                format!("{name:?} is no name of a bucket")
            );
        }
        for endpoint in ["localhost:9000", "ftp://host", "http://", "not an address"] {
            let more = [("AWS_ENDPOINT_URL", endpoint)];
            let wrong = read("lake", &[&KEYS[..], &more].concat()).err().unwrap();
            assert!(wrong.to_string().contains(endpoint), "{wrong}");
        }
    }

    #[test]
    fn a_token_goes_with_the_credentials() {
        let more = [("AWS_SESSION_TOKEN", "t"), ("SSL_CERT_FILE", "/ca.pem")];
        let found = read("lake", &[&KEYS[..], &more].concat()).unwrap();
        assert_eq!(found.credentials.token(), Some("t"));
        assert_eq!(found.roots.as_deref(), Some("/ca.pem"));
        assert_eq!(read("lake", &KEYS).unwrap().credentials.token(), None);
    }
}
