// Which names and addresses mean this endpoint. Pure; names are compared as text and never resolved.
import { EndpointError } from './endpoint-errors.ts'

/** Is this a loopback address or `localhost`? A name that merely resolves to one is not. */
export function isLoopback(hostname: string): boolean {
  const name = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  return (
    name === 'localhost' ||
    name === '::1' ||
    /^127(\.\d{1,3}){3}$/.test(name) ||
    /^::ffff:127(\.\d{1,3}){3}$/.test(name)
  )
}

/** The address as it stands in a URL: IPv6 in brackets. */
export function urlHost(hostname: string): string {
  return hostname.includes(':') && !hostname.startsWith('[') ? `[${hostname}]` : hostname
}

/**
 * The values of the Host header that are served: the bound address, the usual loopback names if it is loopback, and what was allowed besides.
 * Exact text, port included; an allowed name without a port stands for itself with the bound port.
 */
export function servedHosts(bound: { hostname: string; port: number }, allowed: readonly string[] = []): Set<string> {
  const names = new Set([urlHost(bound.hostname)])
  const loopback = isLoopback(bound.hostname)
  if (loopback) for (const name of ['localhost', bound.hostname.includes(':') ? '[::1]' : '127.0.0.1']) names.add(name)
  const hosts = new Set<string>()
  for (const name of names) hosts.add(`${name}:${bound.port}`)
  if (bound.port === 80) for (const name of names) hosts.add(name)
  for (const host of allowed) {
    hosts.add(host)
    if (!/:\d+$/.test(host)) hosts.add(`${host}:${bound.port}`)
  }
  return hosts
}

/** The values of the Origin header that are served: pages of this endpoint itself, and what was allowed besides. */
export function servedOrigins(hosts: ReadonlySet<string>, allowed: readonly string[] = []): Set<string> {
  return new Set([...[...hosts].map((host) => `http://${host}`), ...allowed])
}

const PORT_MAX = 65_535

/**
 * What was allowed is text that a header can be equal to: no patterns, no paths, and not `null`, which every sandboxed page sends.
 * @throws {EndpointError} `invalid-options`
 */
export function checkAddresses(options: {
  readonly port: number
  readonly allowedHosts: readonly string[]
  readonly allowedOrigins: readonly string[]
}): void {
  const { port, allowedHosts, allowedOrigins } = options
  const invalid = (message: string): EndpointError => new EndpointError('invalid-options', message)
  if (!Number.isInteger(port) || port < 0 || port > PORT_MAX) throw invalid(`There is no port ${port}`)
  for (const host of allowedHosts)
    if (!isHostText(host))
      throw invalid(`"${host}" is no value of a Host header, such as "tools.example" or "[::1]:8080"`)
  for (const origin of allowedOrigins)
    if (!isOriginText(origin)) throw invalid(`"${origin}" is no web origin, such as "https://app.example"`)
}

function isHostText(host: string): boolean {
  return /^(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i.test(host)
}

/** As a browser writes it: scheme and host, no default port, no path. Schemes of extensions and applications are allowed. */
function isOriginText(origin: string): boolean {
  const match = /^[a-z][a-z0-9+.-]*:\/\/([^/?#@]+)$/.exec(origin)
  if (match === null) return false
  return !/^https?:/.test(origin) || (URL.canParse(origin) && new URL(origin).origin === origin)
}
