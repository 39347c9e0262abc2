// How values of the program look to conditions, and what conditions may reach. Runs once per engine, before any condition.
//
// `native` asks about the program; what it answers is a plain value or an array [kind, ...] that `made` turns into one.
// Nothing here writes: every trap that would is refused. Returned: functions that compile conditions and what stands in messages.
(function (native) {
  'use strict';
  const { get: reflectGet, ownKeys } = Reflect;
  const TypeErr = TypeError, RefErr = ReferenceError, Err = Error;
  const MapOf = Map, SetOf = Set, Proxied = Proxy, Maker = Function;
  const ArrayProto = Array.prototype, ObjectProto = Object.prototype;
  const freeze = Object.freeze, create = Object.create;
  const hasOwn = Function.prototype.call.bind(ObjectProto.hasOwnProperty);
  const mapGet = Function.prototype.call.bind(Map.prototype.get);
  const mapSet = Function.prototype.call.bind(Map.prototype.set);
  const PIECE = native.piece;
  const TO_PRIMITIVE = Symbol.toPrimitive, ITERATOR = Symbol.iterator;
  const WRITTEN = 'a condition only looks: it cannot change the program; what it is to remember goes into state, as in state.count = 1';

  // What would wait, or outlive the moment at which values are known.
  for (const name of ['Atomics', 'SharedArrayBuffer', 'WeakRef', 'FinalizationRegistry', 'queueMicrotask', 'Promise',
    'DisposableStack', 'AsyncDisposableStack']) delete globalThis[name];

  // The most elements that a built-in function goes through: what it does meanwhile is not interrupted.
  const MOST = 10_000_000;
  const SECOND_MAY_BE_MISSING = new Set(['every', 'filter', 'find', 'findIndex', 'findLast', 'findLastIndex', 'flatMap', 'forEach',
    'includes', 'indexOf', 'map', 'some']);
  for (const name of Object.getOwnPropertyNames(ArrayProto)) {
    const original = ArrayProto[name];
    if (name === 'constructor' || typeof original !== 'function') continue;
    const call = Function.prototype.call.bind(original);
    const check = (list) => {
      if (list !== undefined && list !== null && list.length > MOST) {
        throw new RangeError(`${list.length} elements are too many for ${name}`);
      }
    };
    // Looking at how many arguments there are takes longer than a short list does; these do not tell one from undefined.
    const guarded = (SECOND_MAY_BE_MISSING.has(name) ? {
      [name](first, second) {
        if (!(this?.length <= MOST)) check(this);
        return call(this, first, second);
      },
    } : {
      [name]() {
        check(this);
        return Reflect.apply(original, this, arguments);
      },
    })[name];
    Object.defineProperty(guarded, 'length', { value: original.length });
    Object.defineProperty(ArrayProto, name, { value: guarded, writable: true, configurable: true });
  }
  Object.defineProperty(ArrayProto, ITERATOR, { value: ArrayProto.values });

  const refuse = () => { throw new TypeErr(WRITTEN); };
  const writing = { set: refuse, defineProperty: refuse, deleteProperty: refuse, setPrototypeOf: refuse, preventExtensions: refuse };
  // The index that a key is, or -1.
  const number = (key) => {
    if (typeof key !== 'string') return -1;
    const first = key.charCodeAt(0);
    if (!(first >= 48 && first <= 57)) return -1;
    const at = +key;
    return Number.isSafeInteger(at) ? at : -1;
  };

  // Enumerators: one object for each, so that they are equal if they are the same.
  class Enumerator {
    constructor(name, value) { this.name = name; this.value = value; freeze(this); }
    toString() { return this.name ?? String(this.value); }
    valueOf() { return this.value; }
    toJSON() { return this.name ?? this.value; }
    [TO_PRIMITIVE](hint) { return hint === 'number' || this.name === null ? this.value : this.name; }
  }
  const enumerators = new MapOf();
  const enumerator = (key, name, value) => {
    let known = mapGet(enumerators, key);
    if (known === undefined) mapSet(enumerators, key, known = new Enumerator(name, value));
    return known;
  };

  // Structures, and what pointers to them point to. Members are read when they are asked for.
  const members = {
    ...writing,
    get(target, key) {
      if (key === TO_PRIMITIVE) return (hint) => hint === 'number' ? NaN : native.text(target.id);
      if (typeof key === 'symbol') return undefined;
      const found = native.member(target.id, key);
      if (found !== undefined) return made(found);
      if (key === 'toString') return () => native.text(target.id);
      if (key === 'toJSON' || key === 'then') return undefined;
      if (key in ObjectProto) return ObjectProto[key];
      throw new Err(native.missing(target.id, key));
    },
    has(target, key) { return typeof key === 'string' && native.member(target.id, key) !== undefined; },
    ownKeys(target) { return native.members(target.id); },
    getOwnPropertyDescriptor(target, key) {
      const found = typeof key === 'string' ? native.member(target.id, key) : undefined;
      return found === undefined ? undefined : { value: made(found), enumerable: true, configurable: true, writable: true };
    },
    getPrototypeOf: () => ObjectProto,
  };
  const object = (id) => {
    const target = create(null);
    target.id = id;
    return new Proxied(target, members);
  };

  // Sequences, read in pieces when an element is asked for.
  class Unknown { constructor(why) { this.why = why; } }
  const list = (id, length) => {
    const pieces = create(null);
    const load = (at) => {
      const piece = native.elements(id, at - at % PIECE);
      for (let i = 0; i < piece.length; i++) {
        const said = piece[i];
        const isUnknown = typeof said === 'object' && said !== null && said[0] === 'unknown';
        piece[i] = isUnknown ? new Unknown(said[1]) : made(said);
      }
      return pieces[(at - at % PIECE) / PIECE] = piece;
    };
    const element = (at) => {
      const found = (pieces[(at - at % PIECE) / PIECE] ?? load(at))[at % PIECE];
      if (typeof found === 'object' && found instanceof Unknown) throw new Err(found.why);
      if (found === undefined) throw new Err(`there is no element ${at}`);
      return found;
    };
    return new Proxied([], {
      ...writing,
      get(target, key) {
        const at = number(key);
        if (at >= 0) return at < length ? element(at) : undefined;
        if (key === 'length') return length;
        if (typeof key === 'string' && key[0] === '$') return made(native.member(id, key));
        return reflectGet(ArrayProto, key);
      },
      has(target, key) {
        const at = number(key);
        return at >= 0 ? at < length : key in ArrayProto;
      },
      ownKeys() {
        if (length > MOST) throw new RangeError(`${length} elements are too many`);
        const keys = [];
        for (let i = 0; i < length; i++) keys[i] = String(i);
        keys[keys.length] = 'length';
        return keys;
      },
      getOwnPropertyDescriptor(target, key) {
        if (key === 'length') return { value: length, writable: true, enumerable: false, configurable: false };
        const at = number(key);
        if (at < 0 || at >= length) return undefined;
        return { value: element(at), enumerable: true, configurable: true, writable: true };
      },
    });
  };

  // Pointers to what is no structure: p[0], p[i], without an end.
  const elements = {
    ...writing,
    get(target, key) {
      if (key === TO_PRIMITIVE) return (hint) => hint === 'string' ? native.text(target.id) : made(native.member(target.id, '$address'));
      if (typeof key === 'symbol') return undefined;
      if (/^-?[0-9]{1,15}$/.test(key)) return made(native.at(target.id, +key));
      if (key[0] === '$') return made(native.member(target.id, key));
      if (key === 'toString') return () => native.text(target.id);
      if (key in ObjectProto) return ObjectProto[key];
      throw new Err(`a pointer has no ${key}; it has [0] and [n], without an end`);
    },
    has: (target, key) => typeof key === 'string' && /^-?[0-9]{1,15}$/.test(key),
    ownKeys: () => [],
    getOwnPropertyDescriptor: () => undefined,
  };
  const pointer = (id) => {
    const target = create(null);
    target.id = id;
    return new Proxied(target, elements);
  };

  const made = (said) => {
    if (typeof said !== 'object' || said === null) return said;
    switch (said[0]) {
      case 'object': return object(said[1]);
      case 'list': return list(said[1], said[2]);
      case 'pointer': return pointer(said[1]);
      case 'enumerator': return enumerator(said[1], said[2], said[3]);
      case 'map': {
        const map = new MapOf();
        for (let i = 1; i + 1 < said.length; i += 2) map.set(made(said[i]), made(said[i + 1]));
        return map;
      }
      case 'set': {
        const set = new SetOf();
        for (let i = 1; i < said.length; i++) set.add(made(said[i]));
        return set;
      }
      case 'big': return BigInt(said[1]);
      default: throw new Err(said[1]);
    }
  };

  // What the function was called with.
  const args = new Proxied([], {
    ...writing,
    get(target, key) {
      if (key === 'length') return native.argumentCount();
      if (key === ITERATOR || typeof key === 'string' && key in ArrayProto && number(key) < 0) {
        return native.isLocal(String(key)) ? made(native.name(key)) : reflectGet(ArrayProto, key);
      }
      if (typeof key === 'symbol') return undefined;
      const at = number(key);
      if (at >= 0) return made(native.argument(at));
      return made(native.parameter(key));
    },
    has: (target, key) => number(key) >= 0 ? number(key) < native.argumentCount() : key in ArrayProto,
    ownKeys: () => [...Array(native.argumentCount()).keys(), 'length'].map(String),
    getOwnPropertyDescriptor: (target, key) => key === 'length'
      ? { value: native.argumentCount(), writable: true, enumerable: false, configurable: false }
      : { value: args[key], enumerable: true, configurable: true, writable: true },
  });

  const inOurLanguage = (text) => made(native.expression(String(text)));
  const known = create(null);
  for (const name of ownKeys(globalThis)) if (typeof name === 'string') known[name] = true;
  for (const name of ['state', 'args', '$', 'arguments']) known[name] = true;

  // Every name that a condition does not declare itself: of the program first, but globals and enumerators behind
  // JavaScript's own.
  const scope = new Proxied(create(null), {
    ...writing,
    has: (target, key) => typeof key === 'string' && (!(key in known) || native.isLocal(key)),
    get(target, key) {
      if (typeof key === 'symbol') return undefined;
      const found = native.name(key);
      if (found === undefined) throw new RefErr(native.unknown(key));
      return made(found);
    },
    set(target, key) {
      if (native.isName(key)) refuse();
      throw new RefErr(`no variable "${key}" here; what a condition is to remember goes into state, as in state.${key} = 1`);
    },
  });

  // One condition cannot change what the others see.
  const seen = new SetOf();
  const frozen = (value) => {
    if (value === null || typeof value !== 'object' && typeof value !== 'function' || seen.has(value)) return;
    seen.add(value);
    const all = Object.getOwnPropertyDescriptors(value);
    freeze(value);
    for (const key of ownKeys(all)) for (const part of ['value', 'get', 'set']) frozen(all[key][part]);
    frozen(Object.getPrototypeOf(value));
  };
  frozen(globalThis);
  for (const made of [function* () {}, async function () {}, async function* () {}, [][ITERATOR](), new MapOf()[ITERATOR](),
    new SetOf()[ITERATOR](), ''[ITERATOR](), Enumerator]) frozen(made);

  // Words that JavaScript itself gives a meaning.
  const RESERVED = new SetOf(('async await break case catch class const continue debugger default delete do else enum export extends '
    + 'false finally for function get if in instanceof let new null of return set static switch throw true try typeof var void '
    + 'while yield state args $').split(' '));
  // What may look for names while it runs, or is written in a way that hides them.
  const HIDES = /\b(eval|Function|constructor|arguments|with|super|import|target|this)\b|\\u/;
  const WRITES = /(?<![=!<>])=(?![=>])|\+\+|--|>>=|<<=|\bdelete\b|\btypeof\b/;
  const MOST_NAMES = 30;

  // The names that a condition may ask for; more of them do no harm. Null: they are looked for one by one, in the scope.
  const namesIn = (text) => {
    if (HIDES.test(text)) return null;
    const found = new SetOf();
    for (const [name] of text.matchAll(/(?<![\p{ID_Continue}$\u200c\u200d]|(?<!\.\.)\.\s*)[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/gu)) {
      if (!RESERVED.has(name)) found.add(name);
    }
    return found.size > MOST_NAMES ? null : [...found];
  };

  // The condition as a function of the names that are known where it is asked; they are constants in it.
  const withNames = (text, names) => {
    const given = names.map((_, at) => `$given${at}`);
    const constants = names.map((name, at) => `const ${name} = $given${at};`);
    return new Maker('state', 'args', '$', ...given, `${constants.join(' ')} return !(\n${text}\n)`);
  };

  // Returns how a condition is asked: a function that looks its names up in the scope, then, if it can be asked so too, its
  // names, which of them are JavaScript's own, what makes a function of the names that are found, and its first arguments.
  const compile = (text) => {
    // Only what is one expression can stand in both kinds of brackets.
    new Maker(`[(\n${text}\n)]`);
    const condition = new Maker('state', 'args', '$', `with (arguments[3]) { return !(\n${text}\n) }`);
    const state = {};
    const asksThis = /\bthis\b/.test(text);
    const inScope = () => {
      const self = asksThis && native.isLocal('this') ? made(native.name('this')) : undefined;
      return !Reflect.apply(condition, self, [state, args, inOurLanguage, scope]);
    };
    const names = namesIn(text);
    if (names === null) return [inScope];
    const isOwn = names.map((name) => name in known);
    const isStrict = WRITES.test(text);
    // For the names that are found, as bits: a condition may be asked at several places.
    const form = (found) => {
      const isFound = (_, at) => (found & 1 << at) !== 0;
      const isMissing = (name, at) => !isFound(name, at) && !isOwn[at];
      // Who writes to a name of nothing, or asks for its type, is told more in the scope.
      if (isStrict && names.some(isMissing)) return null;
      return withNames(text, names.filter(isFound));
    };
    return [inScope, names, isOwn, form, state, args, inOurLanguage];
  };
  // What stands between the braces of a message: how it is asked for its text.
  const compileText = (text) => {
    new Maker(`[(\n${text}\n)]`);
    const value = new Maker('state', 'args', '$', `with (arguments[3]) { return (\n${text}\n) }`);
    const state = {};
    const asksThis = /\bthis\b/.test(text);
    return [() => {
      const self = asksThis && native.isLocal('this') ? made(native.name('this')) : undefined;
      return String(Reflect.apply(value, self, [state, args, inOurLanguage, scope]));
    }];
  };
  return [compile, made, compileText];
})
