// Makes a world that serves many messages one that none can change: everything that is there before the adapter's code is
// frozen. What objects commonly replace for themselves (`toString`, an error's `name`) becomes an accessor, because
// the assignment to an inherited read-only property would fail.
(function () {
  "use strict";
  const { getPrototypeOf, getOwnPropertyDescriptor, defineProperty, freeze } = Object;
  const { ownKeys } = Reflect;
  const errors = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError];
  const replaced = new Set([Object.prototype, ...errors.map((error) => error.prototype)]);
  const hidden = [
    getPrototypeOf(function* () {}), getPrototypeOf(async function () {}), getPrototypeOf(async function* () {}),
    getPrototypeOf([][Symbol.iterator]()), getPrototypeOf(new Map()[Symbol.iterator]()),
    getPrototypeOf(new Set()[Symbol.iterator]()), getPrototypeOf(""[Symbol.iterator]()),
    getPrototypeOf("".matchAll(/x/g)), getPrototypeOf([].values().map((item) => item)),
    getPrototypeOf(Iterator.from({ next() { return { done: true }; } })),
  ];
  const seen = new Set();
  const waiting = [globalThis, ...hidden];
  const meet = (value) => {
    if ((typeof value === "object" && value !== null) || typeof value === "function") {
      if (!seen.has(value)) { seen.add(value); waiting.push(value); }
    }
  };
  while (waiting.length > 0) {
    const object = waiting.pop();
    seen.add(object);
    meet(getPrototypeOf(object));
    for (const key of ownKeys(object)) {
      const { value, get, set, writable, enumerable, configurable } = getOwnPropertyDescriptor(object, key);
      meet(value); meet(get); meet(set);
      if (!replaced.has(object) || !writable || !configurable) continue;
      defineProperty(object, key, {
        get() { return value; },
        set(own) {
          if (this === object) throw new TypeError(`'${String(key)}' is read-only`);
          defineProperty(this, key, { value: own, writable: true, enumerable: true, configurable: true });
        },
        enumerable, configurable: false,
      });
      meet(getOwnPropertyDescriptor(object, key).get); meet(getOwnPropertyDescriptor(object, key).set);
    }
    freeze(object);
  }
})
