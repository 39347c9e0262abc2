//! Words that begin with a minus and are no options.

/// Returns whether a word that follows a verb with an expression is a negative operand: `-7/2`, `-x`, `-(a + b)`.
pub fn is_negative(word: &str) -> bool {
    let Some(text) = word.strip_prefix('-') else {
        return false;
    };
    let begins = |c: char| c.is_ascii_alphanumeric() || "_($*.".contains(c);
    // `-h` asks for help.
    text.starts_with(begins) && text != "h"
}

/// Returns whether a word that follows a verb with a location is one before the current line: `-2`.
pub fn is_offset(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minus_before_an_operand_is_no_option() {
        for text in ["-7/2", "-x", "-(a)", "-*p", "-$rax", "-.5"] {
            assert!(is_negative(text), "{text}");
        }
        for text in ["--json", "-", "-h", "x"] {
            assert!(!is_negative(text), "{text}");
        }
    }
}
