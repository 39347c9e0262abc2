// The control plane inside the target: maps what the runtime needs, loads it and starts it. It hooks nothing itself, and owns nothing
// that outlives it: the host detaches once `start` has answered. Code and data that threads may use afterwards belong to the library,
// which is never unloaded, or are mapped and never unmapped.

const PROT_NONE = 0, PROT_READ_WRITE = 3, PROT_READ_EXECUTE = 5;
const MAP_SHARED = 0x01, MAP_PRIVATE_ANONYMOUS = 0x22, MAP_GROWSDOWN = 0x100, MAP_NORESERVE = 0x4000, MAP_FIXED_NOREPLACE = 0x100000;
const MADV_DONTFORK = 10, MADV_DONTDUMP = 16;
const O_RDWR_CLOEXEC = 0x80002;
const MAP_FAILED = ptr(-1);
const THREAD_KEYS_WITHOUT_MALLOC = 32;
const TIME_IS_FORBIDDEN = 4;
const UNLOCKED_AT_ONCE = uint64('0x40000000000');

function libc(name, result, args) {
  return new SystemFunction(Module.getGlobalExportByName(name), result, args);
}

const mmap = libc('mmap', 'pointer', ['pointer', 'size_t', 'int', 'int', 'int', 'int64']);
const madvise = libc('madvise', 'int', ['pointer', 'size_t', 'int']);
const munlock = libc('munlock', 'int', ['pointer', 'size_t']);
const mprotect = libc('mprotect', 'int', ['pointer', 'size_t', 'int']);
const open = libc('open', 'int', ['pointer', 'int']);
const close = libc('close', 'int', ['int']);

// If the program has locked its future mappings (mlockall), the kernel would load every page of the mapping at once. It does not load
// inaccessible pages, nor pages that are unlocked before they become accessible.
function mapUnlocked(address, size, flags, fd) {
  const r = mmap(address, size, PROT_NONE, flags, fd, 0);
  if (r.value.equals(MAP_FAILED))
    return r;
  // In pieces: the kernel counts the pages of one in 32 bits.
  const end = r.value.add(size);
  for (let at = r.value; at.compare(end) < 0; at = at.add(UNLOCKED_AT_ONCE))
    munlock(at, at.add(UNLOCKED_AT_ONCE).compare(end) > 0 ? uint64(end.sub(at).toString()) : UNLOCKED_AT_ONCE);
  const opened = mprotect(r.value, size, PROT_READ_WRITE);
  return opened.value === 0 ? r : { value: MAP_FAILED, errno: opened.errno };
}

function map(what, address, size, flags, fd) {
  const r = mapUnlocked(address, size, flags, fd);
  if (r.value.equals(MAP_FAILED))
    throw new Error(`cannot map ${what} (errno ${r.errno}); is there a limit on virtual memory (ulimit -v) or on locked memory?`);
  madvise(r.value, size, MADV_DONTDUMP);
  return r.value;
}

function mapShared(path, size) {
  const r = open(Memory.allocUtf8String(path), O_RDWR_CLOEXEC);
  if (r.value === -1)
    throw new Error(`cannot open the recorder's shared memory (errno ${r.errno}); does the program run in another container?`);
  try {
    const memory = map('the shared memory', NULL, size, MAP_SHARED | MAP_NORESERVE, r.value);
    madvise(memory, size, MADV_DONTFORK);
    return memory;
  } finally {
    close(r.value);
  }
}

// The memory for return addresses; a second recording of the same process finds it already mapped. The first one is required. The
// others are for stacks on the heap; if the program has mapped something there (with an unlimited stack the kernel puts libraries into
// the second one), calls on such stacks have no leave. Returns the missing ones as bits.
function mapShadows(shadows) {
  let missing = 0;
  for (const [number, [base, size]] of shadows.entries()) {
    const address = ptr(base), bytes = uint64(size);
    // The kernel counts mappings that grow down as stack, not as data, for which the program may have a limit.
    const flags = MAP_PRIVATE_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE | MAP_GROWSDOWN;
    const r = mapUnlocked(address, bytes, flags, -1);
    if (r.value.equals(address)) {
      madvise(address, bytes, MADV_DONTDUMP);
      continue;
    }
    // The kernel may have merged it with a neighbour.
    const there = Process.findRangeByAddress(address);
    const isOurs = there !== null && there.protection === 'rw-' && there.base.add(there.size).compare(address.add(bytes)) >= 0;
    if (isOurs)
      continue;
    missing |= 1 << number;
    if (number === 0)
      throw new Error(`cannot map the shadow of the stacks at ${base} (errno ${r.errno}); is there a limit on virtual memory (ulimit -v) or on locked memory?`);
  }
  return missing;
}

// The runtime's replacements: the name of each, the function that replaces it, and the place for the original's address.
function readReplacements(exports) {
  const table = exports.add(32).readPointer(), count = exports.add(40).readU64().toNumber();
  const rows = [];
  for (let i = 0; i !== count; i++) {
    const row = table.add(i * 24);
    rows.push({ name: row.readPointer().readUtf8String(), by: row.add(8).readPointer(), original: row.add(16).readPointer() });
  }
  return rows;
}

// pthread_setspecific stores the first 32 keys in the thread's own block; a later key would need malloc.
function threadKey(destructor) {
  const key = Memory.alloc(8);
  const made = libc('pthread_key_create', 'int', ['pointer', 'pointer'])(key, destructor);
  return made.value === 0 && key.readU32() < THREAD_KEYS_WITHOUT_MALLOC ? key.readU32() : null;
}

rpc.exports = {
  // Memory for stubs; false if something else is mapped there by now.
  reserve({ address, size }) {
    const flags = MAP_PRIVATE_ANONYMOUS | MAP_FIXED_NOREPLACE;
    return mmap(ptr(address), size, PROT_READ_EXECUTE, flags, -1, 0).value.equals(ptr(address));
  },

  start({ library, exportsVersion, sharedPath, sharedSize, shadows }) {
    const shared = mapShared(sharedPath, uint64(sharedSize));
    const missing = mapShadows(shadows);
    const runtime = Module.load(library);
    const exports = runtime.getExportByName('hs_exports');
    if (exports.readU64().toNumber() !== exportsVersion)
      throw new Error(`${library} is of another release`);
    const key = threadKey(exports.add(24).readPointer());
    const setSpecific = key === null ? NULL : Module.getGlobalExportByName('pthread_setspecific');
    const start = Memory.alloc(48);
    start.writePointer(shared);
    start.add(8).writePointer(setSpecific);
    start.add(16).writeU64(key ?? 0);
    start.add(24).writePointer(runtime.base);
    start.add(32).writeU64(runtime.size);
    start.add(40).writeU64(missing);
    const failed = new NativeFunction(runtime.getExportByName('hs_init'), 'int', ['pointer'])(start);
    if (failed === TIME_IS_FORBIDDEN)
      throw new Error('the program has forbidden its threads to read the time stamp counter (PR_SET_TSC)');
    if (failed !== 0)
      throw new Error(`the runtime's check ${failed} failed`);
    return {
      shared,
      enter: exports.add(8).readPointer(),
      enterXmm: exports.add(16).readPointer(),
      enterTexts: exports.add(56).readPointer(),
      replacements: readReplacements(exports),
    };
  },
};
