//! Buffers that start at a multiple of the block length, as direct I/O requires.

/// The alignment of offsets, lengths and addresses for direct I/O; enough for all file systems in use.
pub const ALIGN: usize = 4096;

/// Aligned bytes.
pub struct Buffer {
    bytes: Vec<u8>,
    from: usize,
    len: usize,
}

impl Buffer {
    /// Returns a buffer of `len` zeroes.
    pub fn new(len: usize) -> Self {
        let bytes = vec![0; len + ALIGN];
        // A vector that never grows does not move.
        let from = bytes.as_ptr().align_offset(ALIGN);
        assert!(from < ALIGN, "addresses are integers on this machine");
        Self { bytes, from, len }
    }

    /// Returns a buffer of `len` zeroes whose pages exist, so that its first use is as fast as any other.
    pub fn touched(len: usize) -> Self {
        let mut buffer = Self::new(len);
        for byte in buffer.bytes_mut().iter_mut().step_by(ALIGN) {
            // A store that the compiler does not remove.
            *std::hint::black_box(byte) = 0;
        }
        buffer
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.from + self.len]
    }

    /// Returns its bytes, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..self.from + self.len]
    }
}
