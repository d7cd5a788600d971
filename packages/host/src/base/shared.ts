import { HostError } from './errors.ts'

/** One holder's claim on a shared resource. Disposing twice is a no-op. */
export interface Lease<T> extends AsyncDisposable {
  readonly value: T
}

/** Closes `value` when the last lease is released. */
export class Shared<T extends AsyncDisposable> {
  #holders = 0
  #closing: Promise<void> | undefined
  readonly #value: T

  constructor(value: T) {
    this.#value = value
  }

  /** True after the last lease was released. */
  get isClosed(): boolean {
    return this.#closing !== undefined
  }

  /** @throws {HostError} `INTERNAL` after the last lease was released: what is closed does not come back. */
  acquire(): Lease<T> {
    if (this.#closing !== undefined) throw new HostError('INTERNAL', 'acquire() after the last lease was released')
    this.#holders += 1
    let released: Promise<void> | undefined
    return { value: this.#value, [Symbol.asyncDispose]: () => (released ??= this.#release()) }
  }

  #release(): Promise<void> {
    this.#holders -= 1
    if (this.#holders > 0) return Promise.resolve()
    this.#closing = Promise.resolve(this.#value[Symbol.asyncDispose]())
    return this.#closing
  }
}
