//! No input costs more memory than its length allows.

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// What a run may have allocated at once beyond what its input's length explains.
const FREE_BYTES: usize = 4 << 20;
/// Inputs are expanded, kept in several forms, and compared.
const BYTES_A_BYTE: usize = 64;

/// Runs a target; panics if it had too much memory at one time.
pub(crate) fn bounded(input: &[u8], run: fn(&[u8]) -> usize) {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let bytes = run(input);
    let used = ALLOCATED.peak_usage().saturating_sub(before);
    assert!(used <= FREE_BYTES + BYTES_A_BYTE * bytes, "{used} bytes of memory for {bytes} bytes of input");
}
