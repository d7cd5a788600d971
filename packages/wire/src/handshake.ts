// Which era does the server speak? Finds out on the one connection there is, and says what to remember.

import type { RequestOptions } from './call.ts'
import { WireError } from './errors.ts'
import type { Peer } from './peer.ts'
import { type Era, type JsonObject, LEGACY_VERSIONS, MODERN_VERSION } from './protocol.ts'
import { checkHello, type ServerHello } from './validate.ts'

export interface Hello extends ServerHello {
  era: Era
}
export interface Introduction {
  clientInfo: JsonObject
  capabilities: JsonObject
}

/** After so long without any answer `initialize` is sent as well: a legacy server that ignores unknown requests would never say so. */
const PROBE_PATIENCE_MS = 1_500
const UNSUPPORTED_VERSION = -32022,
  METHOD_NOT_FOUND = -32601

export function modernMeta({ clientInfo, capabilities }: Introduction): string {
  const key = (name: string, value: unknown): string => `"io.modelcontextprotocol/${name}":${JSON.stringify(value)}`
  return [
    key('protocolVersion', MODERN_VERSION),
    key('clientInfo', clientInfo),
    key('clientCapabilities', capabilities),
  ].join(',')
}

export async function initialize(peer: Peer, introduction: Introduction, options: RequestOptions): Promise<Hello> {
  const result = await peer.request('initialize', { protocolVersion: LEGACY_VERSIONS[0], ...introduction }, options)
  const hello = checkHello(result, result['protocolVersion'])
  if (!LEGACY_VERSIONS.includes(hello.version))
    throw new WireError('version-mismatch', `The server wants protocol ${hello.version}`)
  return { era: 'legacy', ...hello }
}

export async function discover(peer: Peer, options: RequestOptions): Promise<Hello> {
  const result = await peer.request('server/discover', {}, options)
  const { supportedVersions } = result
  if (Array.isArray(supportedVersions) && !supportedVersions.includes(MODERN_VERSION))
    throw new WireError('version-mismatch', `The server speaks ${supportedVersions.join(', ')}`)
  const meta = result['_meta'] as JsonObject | undefined
  return {
    era: 'modern',
    ...checkHello(
      { ...result, serverInfo: result['serverInfo'] ?? meta?.['io.modelcontextprotocol/serverInfo'] },
      MODERN_VERSION,
    ),
  }
}

/** For a server configured or remembered as modern: discovery is optional there. */
export async function assumeModern(peer: Peer, options: RequestOptions): Promise<Hello> {
  try {
    return await discover(peer, options)
  } catch (error) {
    if (error instanceof WireError && error.code === 'remote' && error.details.rpc?.code === METHOD_NOT_FOUND)
      return {
        era: 'modern',
        version: MODERN_VERSION,
        capabilities: { tools: {}, prompts: {}, resources: {} },
        serverInfo: {},
        instructions: undefined,
      }
    throw error
  }
}

/** Does this failure of the probe mean "older server", rather than "broken server"? */
export function saysLegacy(error: unknown): boolean {
  if (!(error instanceof WireError)) return false
  const { rpc, status } = error.details
  if (error.code === 'version-mismatch' || error.code === 'malformed') return true
  if (error.code === 'remote') return rpc?.code !== UNSUPPORTED_VERSION || !supports(rpc.data)
  return error.code === 'http' && status !== undefined && status >= 400 && status < 500
}

function supports(data: unknown): boolean {
  const supported = (data as { supported?: unknown } | undefined)?.supported
  return Array.isArray(supported) && supported.includes(MODERN_VERSION)
}

/** HTTP: ask, and fall back. The probe is a request of its own, so nothing of it lingers. */
export async function negotiateHttp(
  peer: Peer,
  introduction: Introduction,
  setEra: (era: Era) => void,
  options: RequestOptions,
): Promise<Hello> {
  setEra('modern')
  try {
    return await discover(peer, options)
  } catch (error) {
    // Refused, yet our version is in the list of the refusal: the spec says to select it and ask again.
    if (isVersionRefusal(error) && !saysLegacy(error)) return discover(peer, options)
    if (!saysLegacy(error)) throw error
  }
  setEra('legacy')
  return initialize(peer, introduction, options)
}

function isVersionRefusal(error: unknown): boolean {
  return error instanceof WireError && error.details.rpc?.code === UNSUPPORTED_VERSION
}

/**
 * stdio: ask on the same process; one launch in every case but a server that dies of the question.
 * A slow server does not wait longer: after a moment both questions lie in its pipe, and the first useful answer counts.
 */
export function negotiateStdio(
  peer: Peer,
  introduction: Introduction,
  setEra: (era: Era) => void,
  options: RequestOptions,
): Promise<Hello> {
  return new Promise((resolve, reject) => {
    let legacyAsked = false
    const askLegacy = (): void => {
      if (legacyAsked) return
      legacyAsked = true
      peer.platform.clearTimer(patience)
      setEra('legacy')
      initialize(peer, introduction, options).then(resolve, reject)
    }
    const patience = peer.platform.setTimer(askLegacy, PROBE_PATIENCE_MS)
    setEra('modern')
    discover(peer, options).then(
      (hello) => {
        peer.platform.clearTimer(patience)
        if (!legacyAsked) resolve(hello)
      },
      (error: unknown) => {
        if (saysLegacy(error)) askLegacy()
        else {
          peer.platform.clearTimer(patience)
          reject(error as Error)
        }
      },
    )
  })
}
