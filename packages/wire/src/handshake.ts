// Which era does the server speak? Finds out on the one connection there is, and says what to remember.
import type { RequestOptions } from './call.ts'
import { WireError } from './errors.ts'
import type { Peer } from './peer.ts'
import { type Era, type EraVerdict, type JsonObject, LEGACY_VERSIONS, MODERN_VERSION } from './protocol.ts'
import { checkHello, isObject, type ServerHello } from './validate.ts'

/** What a server said about itself, and in which era. */
export interface Hello extends ServerHello {
  era: Era
  /** It speaks the modern era too, although this connection has been opened in the other: the next one need not be. */
  alsoModern?: boolean
}
/** What this client says about itself. */
export interface Introduction {
  clientInfo: JsonObject
  capabilities: JsonObject
}

/** One attempt to come to terms with a server. */
export interface Handshake {
  readonly peer: Peer
  readonly introduction: Introduction
  /** From now on requests are written in this era. */
  setEra(era: Era): void
  /** Options of the next request: what is left of the budget, and the caller's signal. */
  options(): RequestOptions
  /** `open` while the question for the era has been asked and not answered. */
  probe: 'none' | 'open' | 'answered'
}

/** After so long without any answer `initialize` is sent as well: a legacy server that ignores unknown requests would never say so. */
const PROBE_PATIENCE_MS = 1_500
/** The same for a server that has answered the question before: it is slow, not deaf. */
const KNOWN_MODERN_PATIENCE_MS = 15_000
/** Some servers refuse what they do not know instead of naming what they do. */
const OFFERED_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2024-11-05']
const UNSUPPORTED_VERSION = -32022,
  METHOD_NOT_FOUND = -32601
/** What servers answer to a version that they do not like: invalid request, invalid params, the early and the present code for it. */
const VERSION_REFUSALS: ReadonlySet<number> = new Set([-32600, -32602, -32000, UNSUPPORTED_VERSION])

/** The `_meta` of every request in the modern era, as JSON text without braces. */
export function modernMeta({ clientInfo, capabilities }: Introduction): string {
  const member = (name: string, value: unknown): string => `"io.modelcontextprotocol/${name}":${JSON.stringify(value)}`
  return [
    member('protocolVersion', MODERN_VERSION),
    member('clientInfo', clientInfo),
    member('clientCapabilities', capabilities),
  ].join(',')
}

/**
 * The legacy handshake, up to its answer. A version that we never heard of is accepted: legacy versions differ in nothing that this side depends on.
 * A server that refuses the newest version is offered older ones.
 * @throws {WireError} the first refusal; `version-mismatch` for an answer that belongs to the other era.
 */
export async function initialize(shake: Handshake, remembered?: string): Promise<Hello> {
  const offers = new Set(remembered === undefined ? [] : LEGACY_VERSIONS.filter((one) => one === remembered))
  for (const version of OFFERED_VERSIONS) offers.add(version)
  let refusal: unknown
  for (const protocolVersion of offers)
    try {
      const params = { protocolVersion, ...shake.introduction }
      const result = await shake.peer.request('initialize', params, shake.options())
      return legacyHello(result)
    } catch (error) {
      refusal ??= error
      if (!refusesVersion(error)) throw error
    }
  throw refusal
}

function legacyHello(result: JsonObject): Hello {
  const hello = checkHello(result, result['protocolVersion'])
  if (hello.version === MODERN_VERSION || !/^[\w.:-]{1,64}$/.test(hello.version))
    throw new WireError(
      'version-mismatch',
      `The server answered "initialize" with the version "${hello.version.slice(0, 64)}"`,
    )
  return { era: 'legacy', ...hello }
}

function refusesVersion(error: unknown): boolean {
  if (!(error instanceof WireError)) return false
  if (error.code === 'remote') return VERSION_REFUSALS.has(error.details.rpc?.code ?? 0)
  return error.code === 'http' && error.details.status === 400
}

async function discover({ peer, options }: Handshake): Promise<Hello> {
  const result = await peer.request('server/discover', {}, options())
  const { supportedVersions, serverInfo, _meta: meta } = result
  // An answer without the list is none: some older servers answer anything that they do not know with an empty result.
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(MODERN_VERSION))
    throw new WireError(
      'version-mismatch',
      `The server speaks ${String(supportedVersions ?? 'no version that it names').slice(0, 256)}`,
    )
  const named = serverInfo ?? (isObject(meta) ? meta['io.modelcontextprotocol/serverInfo'] : undefined)
  return { era: 'modern', ...checkHello({ ...result, serverInfo: named }, MODERN_VERSION) }
}

/** For a server that is configured as modern: it need not know discovery. */
export async function assumeModern(shake: Handshake): Promise<Hello> {
  shake.setEra('modern')
  try {
    return await discover(shake)
  } catch (error) {
    if (!(error instanceof WireError) || error.details.rpc?.code !== METHOD_NOT_FOUND) throw error
    const capabilities = { tools: {}, prompts: {}, resources: {} }
    return { era: 'modern', version: MODERN_VERSION, capabilities, serverInfo: {}, instructions: undefined }
  }
}

/** For a server that was legacy the last time: no question, unless it has changed its mind. */
export async function assumeLegacy(shake: Handshake, remembered: EraVerdict): Promise<Hello> {
  shake.setEra('legacy')
  try {
    return await initialize(shake, remembered.version)
  } catch (error) {
    const rpc = error instanceof WireError ? error.details.rpc : undefined
    if (rpc?.code !== METHOD_NOT_FOUND && (rpc?.code !== UNSUPPORTED_VERSION || !supports(rpc.data))) throw error
    shake.setEra('modern')
    return discover(shake)
  }
}

/** Does this failure of the probe mean "older server", rather than "broken server"? */
export function saysLegacy(error: unknown): boolean {
  if (!(error instanceof WireError)) return false
  const { rpc, status } = error.details
  if (error.code === 'version-mismatch' || error.code === 'malformed') return true
  if (error.code === 'remote') return rpc?.code !== UNSUPPORTED_VERSION || !supports(rpc.data)
  // A redirect is not followed with this question, but it is with `initialize`.
  return (error.code === 'http' || error.code === 'refused') && status !== undefined && status >= 300 && status < 500
}

function supports(data: unknown): boolean {
  const supported = isObject(data) ? data['supported'] : undefined
  return Array.isArray(supported) && supported.includes(MODERN_VERSION)
}

/** HTTP: ask, and fall back. The probe is a request of its own, so nothing of it lingers. */
export async function negotiateHttp(shake: Handshake): Promise<Hello> {
  shake.setEra('modern')
  try {
    return await discover(shake)
  } catch (error) {
    // Refused, yet our version is in the list of the refusal: the spec says to select it and ask again.
    if (isVersionRefusal(error) && !saysLegacy(error)) return discover(shake)
    if (!saysLegacy(error)) throw error
  }
  shake.setEra('legacy')
  return initialize(shake)
}

function isVersionRefusal(error: unknown): boolean {
  return error instanceof WireError && error.details.rpc?.code === UNSUPPORTED_VERSION
}

type Attempt = { kind: 'hello'; hello: Hello } | { kind: 'refused'; error: unknown }

/**
 * stdio: ask on the same process. A slow server does not wait longer for it: after a moment both questions lie in its pipe, and `initialize` is the last word.
 */
export async function negotiateStdio(shake: Handshake, remembered?: EraVerdict): Promise<Hello> {
  const { peer } = shake
  shake.setEra('modern')
  shake.probe = 'open'
  const probe = attempt(discover(shake)).then((outcome) => {
    if (outcome.kind === 'hello' || !isClosed(outcome.error)) shake.probe = 'answered'
    return outcome
  })
  const probeId = peer.startedId
  const patienceMs = remembered?.era === 'modern' ? KNOWN_MODERN_PATIENCE_MS : PROBE_PATIENCE_MS
  const early = await withPatience(peer, probe, patienceMs)
  if (early?.kind === 'hello') return early.hello
  if (early !== undefined && !saysLegacy(early.error)) throw early.error
  shake.setEra('legacy')
  try {
    if (early !== undefined) return await initialize(shake)
    return await bothAsked(shake, probe)
  } finally {
    peer.forget(probeId) // an answer that comes now would tell nothing new
  }
}

/** A server of both eras answers both questions; then the connection is legacy, and the next one is modern. One of the modern era alone answers the first. */
async function bothAsked(shake: Handshake, probe: Promise<Attempt>): Promise<Hello> {
  let alsoModern = false
  const legacy = attempt(initialize(shake))
  const modern = probe.then(async (outcome) => {
    if (outcome.kind === 'refused') return legacy
    alsoModern = true
    return (await withPatience(shake.peer, legacy, PROBE_PATIENCE_MS)) ?? outcome
  })
  const outcome = await Promise.race([legacy, modern])
  if (outcome.kind === 'hello') return outcome.hello.era === 'legacy' ? { ...outcome.hello, alsoModern } : outcome.hello
  const late = await withPatience(shake.peer, probe, PROBE_PATIENCE_MS)
  if (late?.kind === 'hello') return late.hello
  throw outcome.error
}

/** The connection ended, as opposed to an answer that it carried. */
export function isClosed(error: unknown): boolean {
  return error instanceof WireError && error.code === 'closed'
}

function attempt(hello: Promise<Hello>): Promise<Attempt> {
  return hello.then(
    (value) => ({ kind: 'hello', hello: value }),
    (error: unknown) => ({ kind: 'refused', error }),
  )
}

/** Undefined when it takes too long; the promise goes on. */
function withPatience(peer: Peer, promise: Promise<Attempt>, ms: number): Promise<Attempt | undefined> {
  return new Promise((resolve) => {
    const timer = peer.platform.setTimer(() => resolve(undefined), ms)
    void promise.then((outcome) => {
      peer.platform.clearTimer(timer)
      resolve(outcome)
    })
  })
}
