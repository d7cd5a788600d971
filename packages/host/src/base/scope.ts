type Finalizer = () => void | PromiseLike<void>

/**
 * Owns resources and releases them in reverse order, exactly once.
 *
 * Not every supported Node has `AsyncDisposableStack`; this is the part of it that we use, with two differences: every finalizer runs
 * even when one throws, and what is registered after the close is released at once.
 */
export class Scope implements AsyncDisposable {
  #finalizers: Finalizer[] = []
  #closing: Promise<void> | undefined
  readonly #onLateError: (error: unknown) => void

  /** @param onLateError Told of a finalizer that fails after `close()` has already reported. */
  constructor(onLateError: (error: unknown) => void = () => {}) {
    this.#onLateError = onLateError
  }

  get isClosed(): boolean {
    return this.#closing !== undefined
  }

  /** Registers a finalizer; on a closed scope it runs at once, so a late resource cannot leak. */
  defer(finalizer: Finalizer): void {
    if (this.#closing === undefined) this.#finalizers.push(finalizer)
    else void Promise.resolve().then(finalizer).catch(this.#onLateError)
  }

  /** Registers a resource and returns it. */
  use<T extends AsyncDisposable>(resource: T): T {
    this.defer(() => resource[Symbol.asyncDispose]())
    return resource
  }

  /**
   * Releases everything. The same promise for every caller.
   * @throws {AggregateError} with all that finalizers threw.
   */
  close(): Promise<void> {
    this.#closing ??= this.#run()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #run(): Promise<void> {
    const errors: unknown[] = []
    for (const finalizer of this.#finalizers.splice(0).reverse()) {
      try {
        await finalizer()
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} finalizer(s) failed`)
  }
}
