/**
 * Fails the compile when a union gains a member that a switch does not handle.
 * @throws {TypeError} when it is reached after all, naming what was unhandled.
 */
export function unreachable(value: never, what: string): never {
  throw new TypeError(`unhandled ${what}: ${JSON.stringify(value)}`)
}
