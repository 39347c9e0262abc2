//! The questions that JavaScript conditions ask about a program: the interface between the engine and values.

/// Index of a value handed out during one evaluation.
pub type Handle = usize;

/// A value of the program as a condition sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// No value: a null pointer, `None`.
    Null,
    Bool(bool),
    Float(f64),
    /// An integer: a `BigInt` if a double cannot represent it.
    Integer(i128),
    Text(String),
    /// A structure, or a pointer to one.
    Object(Handle),
    /// A list, with the number of its elements.
    List(Handle, u64),
    /// A pointer to something other than a structure.
    Pointer(Handle),
    /// Keys with their values.
    Map(Vec<(Seen, Seen)>),
    /// A set's elements.
    Set(Vec<Seen>),
    /// A value of an enumeration.
    Enumerator {
        /// The enumeration's name.
        of: String,
        /// The enumerator's name; `None` for a number without one.
        name: Option<String>,
        /// Its number.
        number: i128,
    },
    /// Unknown; the text says why. Using it is an error.
    Unknown(String),
}

/// An answer; the error is a text for the user.
pub type Answer<T> = Result<T, String>;

/// Answers about one moment of a program.
pub trait Program {
    /// Finds a variable of the frame, a member of the current object, or a register.
    fn local(&self, name: &str) -> Answer<Option<Seen>>;
    /// Finds a global variable or an enumerator.
    fn global(&self, name: &str) -> Option<Seen>;
    /// Returns the message that nothing has this name.
    fn unknown(&self, name: &str) -> String;
    /// Returns an argument of the function by number.
    ///
    /// # Errors
    /// It is unknown here.
    fn argument(&self, number: u32) -> Answer<Seen>;
    /// Returns the number of arguments, as far as known.
    fn argument_count(&self) -> u32;
    /// Evaluates an expression in the debugger's expression language.
    ///
    /// # Errors
    /// It is invalid, or has no value.
    fn expression(&self, text: &str) -> Answer<Seen>;
    /// Finds a member; `Ok(None)` if there is none of that name.
    ///
    /// # Errors
    /// Its location is unknown.
    fn member(&self, of: Handle, name: &str) -> Answer<Option<Seen>>;
    /// Returns the names of all members.
    fn members(&self, of: Handle) -> Vec<String>;
    /// Returns the message that there is no member of this name.
    fn missing(&self, of: Handle, name: &str) -> String;
    /// Returns at most `count` elements of a list, starting at index `from`.
    ///
    /// # Errors
    /// They cannot be found.
    fn elements(&self, of: Handle, from: u64, count: usize) -> Answer<Vec<Seen>>;
    /// Returns the element `index` elements after the one a pointer points to.
    ///
    /// # Errors
    /// The pointer is null or cannot be indexed.
    fn at(&self, of: Handle, index: i64) -> Answer<Seen>;
    /// Returns the value as `print` shows it.
    fn text(&self, of: Handle) -> String;
}
