// The two things that are tried again over HTTP: the handshake and a listing. Neither changes anything at the server.

import { type Platform, WireError } from '@convoke/wire'
import { type HostError, untilAborted } from '../base/index.ts'
import { hostErrorOf } from './faults.ts'
import { saysNotThrough } from './sentences.ts'

const DELAYS_MS: readonly number[] = [250, 1_000]
const STATUSES: readonly number[] = [408, 429, 500, 502, 503, 504]
const INTERNAL_ERROR = -32603

/** Where and until when is tried again. */
export interface RetryOptions {
  readonly server: string
  readonly platform: Platform
  /** What is left of the time for all attempts, in milliseconds: nothing is tried after it. */
  leftMs(): number
  readonly signal: AbortSignal | undefined
  /** Aborted when nothing can succeed any more, such as when the session is over: what was seen last is thrown then. */
  readonly over?: AbortSignal | undefined
}

/**
 * Runs `attempt`, and again after 250 and 1,000 ms when the server could not be reached or said that it cannot just now.
 * @throws what the last attempt threw, or at once on abort.
 */
export async function retryHttp<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { platform, signal, over } = options
  for (let round = 0; ; round++) {
    try {
      return await attempt()
    } catch (error) {
      const delayMs = DELAYS_MS[round]
      const isLate = delayMs === undefined || delayMs >= options.leftMs()
      if (isLate || signal?.aborted === true || isAborted(over) || !isTransient(hostErrorOf(error, options.server)))
        throw error
      await pause(platform, delayMs, { signal, over })
      if (isAborted(over)) throw error
    }
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true
}

/** May the same request succeed a second later? */
export function isTransient({ code, details, cause }: HostError): boolean {
  // A session that is gone does not come back by asking again in it.
  if (cause instanceof WireError && cause.code === 'session-lost') return false
  if (code === 'SERVER_UNREACHABLE' || code === 'CONNECTION_LOST') return true
  if (code === 'SERVER_ERROR' && isNotThrough(details['rpc'])) return true
  const status = details['status']
  return (code === 'HTTP_STATUS' || code === 'SERVER_ERROR') && typeof status === 'number' && STATUSES.includes(status)
}

function isNotThrough(rpc: unknown): boolean {
  const { code, message } = (rpc ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  return code === INTERNAL_ERROR && typeof message === 'string' && saysNotThrough(message)
}

/** Ends early when there is nothing to wait for any more. */
async function pause(
  platform: Platform,
  ms: number,
  { signal, over }: Pick<RetryOptions, 'signal' | 'over'>,
): Promise<void> {
  let timer: object | undefined
  let end: () => void = () => {}
  const passed = new Promise<void>((resolve) => {
    end = resolve
    timer = platform.setTimer(resolve, ms)
  })
  over?.addEventListener('abort', end, { once: true })
  try {
    await untilAborted(passed, signal)
  } finally {
    platform.clearTimer(timer)
    over?.removeEventListener('abort', end)
  }
}
