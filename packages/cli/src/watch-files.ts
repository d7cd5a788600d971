// Tells when one of a few files has changed, come or gone. Looks at each twice a second: that works with every editor, also with those that put a new file
// in place of the old one, and on every file system.
import { unwatchFile, watchFile } from 'node:fs'

/** Between two looks at a file, in milliseconds. */
const LOOK_MS = 500
/** A file that is being written has a moment to become whole, in milliseconds. */
const DEBOUNCE_MS = 250

/** Follows files until it is disposed. */
export class FileWatch implements AsyncDisposable {
  readonly #paths: readonly string[]
  readonly #onChanged: () => Promise<void>
  #timer: NodeJS.Timeout | undefined
  #isWanted = false
  #working: Promise<void> | undefined

  /** @param onChanged Runs once at a time, and once more when something changed meanwhile. Never rejects. */
  constructor(paths: readonly string[], onChanged: () => Promise<void>) {
    this.#paths = [...new Set(paths)]
    this.#onChanged = onChanged
    for (const path of this.#paths) watchFile(path, { interval: LOOK_MS, persistent: false }, this.#onLook)
    // What changed between the reading of the files and the first look at them is told by nobody.
    this.#timer = setTimeout(() => this.#run(), LOOK_MS + DEBOUNCE_MS)
  }

  readonly #onLook = (now: { mtimeMs: number; size: number; ino: number }, before: typeof now): void => {
    if (now.mtimeMs === before.mtimeMs && now.size === before.size && now.ino === before.ino) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#run(), DEBOUNCE_MS)
  }

  #run(): void {
    this.#timer = undefined
    this.#isWanted = true
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined
    })
  }

  async #work(): Promise<void> {
    while (this.#isWanted) {
      this.#isWanted = false
      await this.#onChanged()
    }
  }

  /** Resolves when nothing runs any more. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const path of this.#paths) unwatchFile(path, this.#onLook)
    clearTimeout(this.#timer)
    this.#isWanted = false
    await this.#working
  }
}
