// Log messages of servers, on their way to clients: cleaned, cut, and so many a second. What is left out is counted and said once.
import { cleanLine, type JsonObject } from '@convoke/host'
import { cleanValue } from './clean-values.ts'

const PER_SECOND_MAX = 100
const BYTES_MAX = 64 * 1024
const SECOND_MS = 1_000

interface Window {
  startedMs: number
  count: number
  dropped: number
}

/** Where a message goes. False: it was not sent. */
export type SendLog = (params: JsonObject) => boolean

/** One gate for all messages; each receiver has its own count. */
export class LogGate {
  readonly #windows = new WeakMap<object, Window>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** Passes a message of `server` on. False: it was left out, or not sent. */
  pass(receiver: object, server: string, params: JsonObject, send: SendLog): boolean {
    const window = this.#windowOf(receiver, server, send)
    if (++window.count > PER_SECOND_MAX) {
      window.dropped++
      return false
    }
    return send(shown(server, params))
  }

  #windowOf(receiver: object, server: string, send: SendLog): Window {
    const nowMs = this.#now()
    const known = this.#windows.get(receiver)
    if (known !== undefined && nowMs - known.startedMs < SECOND_MS) return known
    if (known !== undefined && known.dropped > 0)
      send({
        level: 'warning',
        logger: 'convoke',
        data: `${known.dropped} log messages of "${server}" and others were left out: more than ${PER_SECOND_MAX} a second`,
      })
    const window = { startedMs: nowMs, count: 0, dropped: 0 }
    this.#windows.set(receiver, window)
    return window
  }
}

/** The message under the server's name, if it is known. */
function shown(server: string, params: JsonObject): JsonObject {
  const { level, logger, data } = params
  const text = JSON.stringify(data ?? null)
  const small =
    text.length <= BYTES_MAX
      ? cleanValue(data ?? null)
      : `${String(cleanValue(text.slice(0, 1_000)))}… (${text.length} characters)`
  return {
    level: typeof level === 'string' ? level : 'info',
    logger: [server, typeof logger === 'string' ? cleanLine(logger, 200) : ''].filter((part) => part !== '').join('/'),
    data: small,
  }
}
