//! The configuration file, `~/.config/hindsight/config.toml`. A missing setting has its default. A wrong setting is an
//! error with the file's name and the line; it never falls back to the default.
//!
//! ```toml
//! [daemon]
//! idle_timeout_minutes = 30   # without sessions and clients, the daemon ends
//! [timeouts]
//! request_secs = 30           # how long a command waits for its answer
//! await_default_secs = 300    # how long continue, next, await and so on wait for a stop
//! [output]
//! max_events = 10000          # how much of a program's output is kept; the oldest goes first
//! max_bytes_mb = 10
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

use crate::error::{Error, Result};

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The daemon itself.
    pub daemon: DaemonConfig,
    /// Timeouts of commands.
    pub timeouts: Timeouts,
    /// How much of a program's output is kept.
    pub output: OutputLimits,
}

/// The daemon itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DaemonConfig {
    /// The daemon ends after this many minutes without sessions and clients.
    #[serde(deserialize_with = "positive")]
    pub idle_timeout_minutes: f64,
}

/// Timeouts of commands.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// How long a command waits for its answer, in seconds.
    #[serde(deserialize_with = "positive")]
    pub request_secs: f64,
    /// How long a command waits for a stop, in seconds, unless `--timeout` is given.
    #[serde(deserialize_with = "positive")]
    pub await_default_secs: f64,
}

/// How much of a program's output is kept.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputLimits {
    /// Maximum number of pieces.
    #[serde(deserialize_with = "at_least_one")]
    pub max_events: usize,
    /// Maximum size in megabytes (2^20 bytes).
    #[serde(deserialize_with = "positive")]
    pub max_bytes_mb: f64,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        DaemonConfig {
            idle_timeout_minutes: 30.0,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            request_secs: 30.0,
            await_default_secs: 300.0,
        }
    }
}

impl Default for OutputLimits {
    fn default() -> Self {
        OutputLimits {
            max_events: 10_000,
            max_bytes_mb: 10.0,
        }
    }
}

/// The longest time allowed, so that sums of times do not overflow.
const LONGEST_SECS: f64 = 1e9;

impl Config {
    /// Reads the user's file. All settings have their defaults if it does not exist.
    ///
    /// # Errors
    /// The file cannot be read, or a setting is wrong.
    pub fn load() -> Result<Config> {
        match file(
            std::env::var_os("XDG_CONFIG_HOME"),
            std::env::var_os("HOME"),
        ) {
            Some(path) => Config::load_from(&path),
            None => Ok(Config::default()),
        }
    }

    /// Reads a file. All settings have their defaults if it does not exist.
    ///
    /// # Errors
    /// The file cannot be read, or a setting is wrong.
    pub fn load_from(path: &Path) -> Result<Config> {
        match std::fs::read_to_string(path) {
            Ok(text) => Config::parse(path, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Config::default()),
            Err(error) => Err(Error::io(format!("read {}", path.display()))(error)),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Config> {
        toml::from_str(text).map_err(|error| Error::toml(path, text, &error))
    }

    /// How long the daemon stays without sessions and clients.
    #[must_use]
    pub fn idle_timeout(&self) -> Duration {
        Duration::from_secs_f64((self.daemon.idle_timeout_minutes * 60.0).min(LONGEST_SECS))
    }

    /// How long a command waits for its answer.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeouts.request_secs)
    }

    /// How long an evaluation may take. It is shorter than a client's wait, so that the answer still finds a reader.
    #[must_use]
    pub fn question_time(&self) -> Duration {
        self.request_timeout().mul_f64(0.8)
    }

    /// How long a command waits for a stop.
    #[must_use]
    pub fn await_timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeouts.await_default_secs)
    }
}

impl OutputLimits {
    /// Maximum size in bytes.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        // The cast saturates: a float beyond usize becomes the greatest usize.
        (self.max_bytes_mb * f64::from(1 << 20)) as usize
    }
}

fn file(config_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let folder = config_home
        .and_then(absolute)
        .or_else(|| Some(home.and_then(absolute)?.join(".config")))?;
    Some(folder.join("hindsight/config.toml"))
}

fn positive<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<f64, D::Error> {
    let number = f64::deserialize(from)?;
    match number > 0.0 && number <= LONGEST_SECS {
        true => Ok(number),
        false => Err(de::Error::custom(format!(
            "{number} is out of range: it must be more than 0 and at most {LONGEST_SECS}"
        ))),
    }
}

fn at_least_one<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<usize, D::Error> {
    match usize::deserialize(from)? {
        0 => Err(de::Error::custom("it must be at least 1")),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn parse(text: &str) -> Result<Config> {
        Config::parse(Path::new("config.toml"), text)
    }

    #[test]
    fn an_empty_or_missing_file_gives_the_defaults() {
        let config = parse("").unwrap();
        assert_eq!(config, Config::default());
        assert_eq!(config.idle_timeout(), Duration::from_secs(1800));
        assert_eq!(config.request_timeout(), Duration::from_secs(30));
        assert_eq!(config.question_time(), replay::QUESTION_TIME);
        assert_eq!(config.await_timeout(), Duration::from_secs(300));
        assert_eq!(config.output.max_events, 10_000);
        assert_eq!(config.output.max_bytes(), 10 << 20);
        let nowhere = tempfile::tempdir().unwrap();
        let missing = nowhere.path().join("config.toml");
        assert_eq!(Config::load_from(&missing).unwrap(), Config::default());
    }

    #[test]
    fn every_setting_is_read_and_whole_numbers_will_do() {
        let config = parse(
            "[daemon]\nidle_timeout_minutes = 0.5\n[timeouts]\nrequest_secs = 5\n\
             await_default_secs = 7\n[output]\nmax_events = 3\nmax_bytes_mb = 2\n",
        )
        .unwrap();
        assert_eq!(config.idle_timeout(), Duration::from_secs(30));
        assert_eq!(config.request_timeout(), Duration::from_secs(5));
        assert_eq!(config.await_timeout(), Duration::from_secs(7));
        assert_eq!(config.output.max_events, 3);
        assert_eq!(config.output.max_bytes(), 2 << 20);
    }

    #[test]
    fn mistakes_name_file_and_line() {
        let told = |text: &str| {
            let error = parse(text).unwrap_err();
            let hint = error.hint();
            assert_eq!(hint.as_deref(), Some("correct the file or remove the line"));
            error.to_string()
        };
        expect!["config.toml:2: invalid type: string \"soon\", expected f64"]
            .assert_eq(&told("[daemon]\nidle_timeout_minutes = \"soon\"\n"));
        expect!["config.toml:3: unknown field `idle`, expected `idle_timeout_minutes`"]
            .assert_eq(&told("# mine\n[daemon]\nidle = 3\n"));
        expect!["config.toml:2: -1 is out of range: it must be more than 0 and at most 1000000000"]
            .assert_eq(&told("[timeouts]\nrequest_secs = -1\n"));
        expect!["config.toml:2: it must be at least 1"]
            .assert_eq(&told("[output]\nmax_events = 0\n"));
        for bad in [
            "[daemon",
            "x = ",
            "[daemon]\nidle_timeout_minutes = nan",
            "[output]\nmax_bytes_mb = inf",
            "[output]\nmax_events = -1",
        ] {
            assert!(told(bad).starts_with("config.toml:"), "{bad}");
        }
    }

    #[test]
    fn the_file_is_where_the_user_keeps_settings() {
        let found = |config: Option<&str>, home: Option<&str>| {
            file(config.map(OsString::from), home.map(OsString::from))
        };
        let path = |path: &str| Some(PathBuf::from(path));
        assert_eq!(
            found(None, Some("/home/a")),
            path("/home/a/.config/hindsight/config.toml")
        );
        assert_eq!(
            found(Some("/etc/a"), Some("/home/a")),
            path("/etc/a/hindsight/config.toml")
        );
        assert_eq!(
            found(Some("relative"), Some("/home/a")),
            path("/home/a/.config/hindsight/config.toml")
        );
        assert_eq!(found(None, None), None);
    }
}
