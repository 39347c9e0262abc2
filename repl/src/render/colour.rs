//! Colours. There are none if the stream is not a terminal, `NO_COLOR` is set, or the terminal is dumb.

use std::fmt;

/// Whether escapes for colour may be written to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    On,
    Off,
}

/// When output is coloured, as `--color` says: on a terminal unless `NO_COLOR` is set, everywhere, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ColourChoice {
    Auto,
    Always,
    Never,
}

/// The role of a text, which determines its look.
#[derive(Clone, Copy, Debug)]
pub enum Paint {
    /// The word `error:`.
    Error,
    /// The word `warning:`.
    Warning,
    /// The word `help:`, and headings.
    Heading,
    /// Less important text: rules, NULL, footers.
    Dim,
    /// The prompt.
    Prompt,
    /// The old state, next to the new one.
    Removed,
    /// The new state, next to the old one.
    Added,
}

impl Colour {
    /// Returns `text` in the style of `paint`.
    pub fn paint<T: fmt::Display>(self, paint: Paint, text: T) -> Painted<T> {
        Painted {
            colour: self,
            paint,
            text,
        }
    }
}

/// Text with its colour; it formats itself with or without escapes.
pub struct Painted<T> {
    colour: Colour,
    paint: Paint,
    text: T,
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.colour == Colour::Off {
            return self.text.fmt(f);
        }
        let code = match self.paint {
            Paint::Error => "1;31",
            Paint::Warning => "1;33",
            Paint::Heading => "1",
            Paint::Dim => "2",
            Paint::Prompt => "1;36",
            Paint::Removed => "31",
            Paint::Added => "32",
        };
        write!(f, "\x1b[{code}m{}\x1b[0m", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colour_the_text_is_bare() {
        assert_eq!(
            Colour::Off.paint(Paint::Error, "error:").to_string(),
            "error:"
        );
        assert_eq!(
            Colour::On.paint(Paint::Error, "error:").to_string(),
            "\x1b[1;31merror:\x1b[0m"
        );
    }
}
