//! Properties of stdin, stdout and stderr, detected once at start and passed on, so that tests can set them.

use std::io::IsTerminal;

use super::{Colour, ColourChoice};

/// The properties of the streams that rendering needs.
#[derive(Clone, Debug)]
pub struct Terminal {
    /// Both stdin and stdout are terminals: there is a user.
    pub interactive: bool,
    /// stdout is a terminal.
    pub stdout: bool,
    /// stderr is a terminal that can redraw a line.
    pub progress: bool,
    pub stdout_colour: Colour,
    pub stderr_colour: Colour,
}

impl Terminal {
    /// Detects them from the system and the environment (`NO_COLOR`, `TERM`).
    pub fn detect() -> Terminal {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = |is_terminal: bool| {
            if is_terminal && !dumb && !no_colour {
                Colour::On
            } else {
                Colour::Off
            }
        };
        let stdout = std::io::stdout().is_terminal();
        let stderr = std::io::stderr().is_terminal();
        Terminal {
            interactive: stdout && std::io::stdin().is_terminal(),
            stdout,
            progress: stderr && !dumb,
            stdout_colour: colour(stdout),
            stderr_colour: colour(stderr),
        }
    }

    /// Follows the user's choice, which overrules what was detected.
    pub fn choose_colour(&mut self, choice: ColourChoice) {
        let colour = match choice {
            ColourChoice::Auto => return,
            ColourChoice::Always => Colour::On,
            ColourChoice::Never => Colour::Off,
        };
        self.stdout_colour = colour;
        self.stderr_colour = colour;
    }

    /// Returns the current size of the terminal as (columns, rows). It may change while the program runs.
    pub fn size() -> (usize, usize) {
        let size = terminal_size::terminal_size();
        // A width of 0 means that the terminal does not know its size.
        match size {
            Some((columns, rows)) if columns.0 > 0 && rows.0 > 0 => {
                (columns.0.into(), rows.0.into())
            }
            _ => (80, 24),
        }
    }
}
