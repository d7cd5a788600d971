// What a host may certify about its user, minted for single calls. A caller can never set it, and any doubt certifies nothing.
import { isObject, type JsonObject, REQUESTED_ENTITLEMENTS_KEY } from '../base/index.ts'
import type { CatalogTool } from '../catalog/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { Platform } from '../protocol/index.ts'

/** Makes entitlements. Given by the host; without one nothing is ever minted. */
export interface EntitlementMinter {
  /** The account of now, compared with `===`; undefined when nobody is signed in. */
  account(): object | undefined
  /** The certificate for one call, as JSON; at most 2,500 ms and 1 MiB. Rejecting means that nothing is known. */
  mint(request: EntitlementRequest, options: { readonly signal: AbortSignal }): Promise<JsonObject>
}

/** What a certificate is asked for. */
export interface EntitlementRequest {
  readonly server: string
  readonly tool: string
  /** What the tool wants to know, in its own words. */
  readonly entitlements: readonly string[]
}

/** What decides whether a call gets entitlements. */
export interface EntitlementFacts {
  readonly tool: Pick<CatalogTool, 'annotations' | 'meta' | 'origin' | 'state'>
  readonly definition: Pick<ServerDefinition, 'plugin' | 'environment'>
  readonly args: JsonObject
}

/** Longest wait for a certificate, in milliseconds. */
export const MINT_MS_MAX = 2_500
/** Largest certificate, in bytes of JSON. */
export const MINT_BYTES_MAX: number = 1024 * 1024
const REQUESTED_MAX = 64
const UNKNOWN: JsonObject = { status: 'unknown' }

/**
 * What a tool may be certified; undefined when nothing. Pure. Only a local process of a plugin gets any, for a tool that asks for it, says live that it
 * only reads, and is called without arguments.
 */
export function entitlementsOf({ tool, definition, args }: EntitlementFacts): readonly string[] | undefined {
  const { annotations, meta, origin, state } = tool
  const requested = meta?.[REQUESTED_ENTITLEMENTS_KEY]
  if (!Array.isArray(requested) || requested.length === 0 || requested.length > REQUESTED_MAX) return undefined
  if (!requested.every((one): one is string => typeof one === 'string')) return undefined
  if (definition.plugin === undefined || definition.environment !== 'local' || origin !== 'stdio') return undefined
  if (state !== 'live' || annotations?.['readOnlyHint'] !== true || Object.keys(args).length > 0) return undefined
  return requested
}

/** Mints, within its limits. Never rejects: a minter that fails, is late, says too much or whose account changed meanwhile knows nothing. */
export async function mintEntitlements(
  minter: EntitlementMinter,
  request: EntitlementRequest,
  {
    platform,
    limitMs,
    signal,
  }: { readonly platform: Platform; readonly limitMs: number; readonly signal?: AbortSignal | undefined },
): Promise<JsonObject> {
  const abort = new AbortController()
  let timer: object | undefined
  const onAbort = (): void => abort.abort()
  const over = new Promise<undefined>((resolve) => {
    abort.signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  timer = platform.setTimer(onAbort, Math.min(MINT_MS_MAX, limitMs))
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    const account = minter.account()
    if (account === undefined) return UNKNOWN
    const minted = await Promise.race([minter.mint(request, { signal: abort.signal }), over])
    return minter.account() === account && isFit(minted) ? minted : UNKNOWN
  } catch {
    return UNKNOWN
  } finally {
    platform.clearTimer(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

function isFit(minted: unknown): minted is JsonObject {
  return isObject(minted) && Buffer.byteLength(JSON.stringify(minted)) <= MINT_BYTES_MAX
}
