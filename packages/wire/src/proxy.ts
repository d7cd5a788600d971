// Which proxy a request goes through. Pure: the environment is an argument.
import { WireError } from './errors.ts'

/** Where to connect instead of the server itself. */
export interface ProxyChoice {
  readonly secure: boolean
  readonly host: string
  readonly port: number
  /** Value of `proxy-authorization`. Never part of a message. */
  readonly authorization: string | undefined
  /** Host and port, for messages. */
  readonly name: string
}

type Environment = Readonly<Record<string, string | undefined>>

const NO_PROXY_ENTRIES_MAX = 1_000

/**
 * The proxy for this server, or undefined for none.
 *
 * `environment` reads `https_proxy`/`HTTPS_PROXY` or `http_proxy`/`HTTP_PROXY` by the scheme of the server, then `all_proxy`/`ALL_PROXY`, and `no_proxy`/`NO_PROXY`;
 * the lower-case name wins. Loopback addresses are always reached directly then. An explicit proxy is used for every address.
 * @throws {WireError} `refused`: the setting is no proxy URL that can be used. The message never shows the value, which may hold a password.
 */
export function chooseProxy(
  url: URL,
  setting: 'environment' | 'none' | (string & {}),
  env: Environment,
): ProxyChoice | undefined {
  if (setting === 'none') return undefined
  if (setting !== 'environment') return readProxy(setting, 'The proxy of this server')
  const host = bareHost(url.hostname)
  if (isLoopback(host) || isExempt(host, portOf(url), read(env, 'no_proxy') ?? '')) return undefined
  const name = url.protocol === 'https:' ? 'https_proxy' : 'http_proxy'
  // In a CGI program the variable HTTP_PROXY is made of a header that the client of that program sent (CVE-2016-5385).
  const isCgi = env['REQUEST_METHOD'] !== undefined
  const value = env[name] ?? (name === 'http_proxy' && isCgi ? undefined : env[name.toUpperCase()])
  const chosen = value || read(env, 'all_proxy')
  return chosen ? readProxy(chosen, value ? name.toUpperCase() : 'ALL_PROXY') : undefined
}

function read(env: Environment, name: string): string | undefined {
  return env[name] ?? env[name.toUpperCase()]
}

function readProxy(value: string, source: string): ProxyChoice {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || url.hostname === '') throw new WireError('refused', `${source} is not a URL`)
  const secure = url.protocol === 'https:'
  if (!secure && url.protocol !== 'http:')
    throw new WireError(
      'refused',
      `${source} is a "${url.protocol.slice(0, -1)}" proxy; only http and https proxies can be used`,
    )
  const host = bareHost(url.hostname)
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  return { secure, host, port, authorization: basic(url, source), name: `${url.hostname}:${port}` }
}

function basic({ username, password }: URL, source: string): string | undefined {
  if (username === '' && password === '') return undefined
  try {
    const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    return `Basic ${Buffer.from(pair, 'utf8').toString('base64')}`
  } catch {
    throw new WireError('refused', `${source} has a user name or password with a broken percent escape`)
  }
}

/** Does an entry of NO_PROXY name this host? `*`, `name`, `.suffix`, `*.suffix`, each with or without a port; no ranges of addresses. */
function isExempt(host: string, port: number, list: string): boolean {
  const entries = list.toLowerCase().split(/[\s,]+/, NO_PROXY_ENTRIES_MAX)
  return entries.some((entry) => {
    if (entry === '*') return true
    const { name, port: only } = splitEntry(entry)
    if (name === '' || (only !== undefined && only !== port)) return false
    return host === name || (!isAddress(host) && host.endsWith(`.${name}`))
  })
}

function splitEntry(entry: string): { name: string; port: number | undefined } {
  const match = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry)
  const whole = match?.[1] ?? entry // an address with colons, not in brackets
  const name = bareHost(whole.replace(/^\*?\./, '')).replace(/\.$/, '')
  return { name, port: match?.[2] === undefined ? undefined : Number(match[2]) }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

function isAddress(host: string): boolean {
  return host.includes(':') || /^\d+(\.\d+){3}$/.test(host)
}

/** Without brackets and the dot at the end. */
export function bareHost(hostname: string): string {
  return hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase()
}

/** The port, also where the URL leaves it out. */
export function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
}
