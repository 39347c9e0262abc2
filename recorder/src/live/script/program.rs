//! What conditions in JavaScript ask about a program, whatever answers: the seam between the engine and values.

/// Index of a value that was handed out during one evaluation.
pub type Handle = usize;

/// A value of the program as a condition sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// No value: a null pointer, `None`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A floating-point number.
    Float(f64),
    /// An integer: a `BigInt` where a double does not hold it.
    Integer(i128),
    /// Text.
    Text(String),
    /// Something with members, or a pointer to it.
    Object(Handle),
    /// So many elements.
    List(Handle, u64),
    /// A pointer to what is no structure.
    Pointer(Handle),
    /// Keys with their values.
    Map(Vec<(Seen, Seen)>),
    /// Elements that are their own keys.
    Set(Vec<Seen>),
    /// A value of an enumeration.
    Enumerator {
        /// The enumeration's name.
        of: String,
        /// Its own; `None` for a number that has none.
        name: Option<String>,
        /// Its number.
        number: i128,
    },
    /// It is not known; the text says why. Looking at it is an error.
    Unknown(String),
}

/// An answer; the error is a text for people.
pub type Answer<T> = Result<T, String>;

/// Answers about one moment of a program.
pub trait Program {
    /// Finds a variable of the frame, a member of the object that is worked on, or a register.
    fn local(&self, name: &str) -> Answer<Option<Seen>>;
    /// Finds a global variable or an enumerator.
    fn global(&self, name: &str) -> Option<Seen>;
    /// Says that nothing has this name.
    fn unknown(&self, name: &str) -> String;
    /// Returns an argument of the function by number.
    ///
    /// # Errors
    /// It is not known here.
    fn argument(&self, number: u32) -> Answer<Seen>;
    /// How many arguments there are, as far as is known.
    fn argument_count(&self) -> u32;
    /// Evaluates an expression in the language of the debugger.
    ///
    /// # Errors
    /// It has a mistake, or no value.
    fn expression(&self, text: &str) -> Answer<Seen>;
    /// Finds a member; `Ok(None)` if there is none of the name.
    ///
    /// # Errors
    /// Where it is cannot be known.
    fn member(&self, of: Handle, name: &str) -> Answer<Option<Seen>>;
    /// The names of all members.
    fn members(&self, of: Handle) -> Vec<String>;
    /// Says that there is no member of this name.
    fn missing(&self, of: Handle, name: &str) -> String;
    /// At most `count` elements of a list, from number `from` on.
    ///
    /// # Errors
    /// They cannot be found.
    fn elements(&self, of: Handle, from: u64, count: usize) -> Answer<Vec<Seen>>;
    /// What stands `index` elements behind where a pointer points to.
    ///
    /// # Errors
    /// It is null or cannot be indexed.
    fn at(&self, of: Handle, index: i64) -> Answer<Seen>;
    /// The value as `print` shows it.
    fn text(&self, of: Handle) -> String;
}
