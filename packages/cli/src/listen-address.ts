// What --http says. Pure.

import { usageError } from './command-error.ts'

/** Where to listen. */
export interface ListenAddress {
  readonly hostname: string
  /** 0: a free one. */
  readonly port: number
}

/** The port of `convoke serve` when none is given; another one is taken when it is in use. */
export const DEFAULT_PORT = 7337

/**
 * Reads `HOST:PORT`, `[IPv6]:PORT`, `:PORT`, `PORT` or `HOST`. Without a host it is 127.0.0.1.
 * @throws {CommandError} exit code 2 for anything else.
 */
export function readListenAddress(text: string): ListenAddress {
  const [, bracketed, plain, port] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:[\]/]*))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = bracketed ?? plain
  if (host === undefined || (host === '' && port === undefined)) throw badAddress()
  if (port === undefined && /^\d+$/.test(host)) return { hostname: '127.0.0.1', port: portNumber(host) }
  return { hostname: host === '' ? '127.0.0.1' : host, port: port === undefined ? DEFAULT_PORT : portNumber(port) }
}

function portNumber(text: string): number {
  const port = Number(text)
  if (port > 65_535) throw badAddress()
  return port
}

const badAddress = (): Error =>
  usageError('--http takes HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080 (port 0: a free one).')
