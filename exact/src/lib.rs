//! Every instruction: records what a program cannot compute by itself (what the kernel and the processor decided), and runs it again.

pub mod system_calls;
