// What a definition means for every room that treats some servers differently. Resolved here, once; nobody branches on a name.
import type { ServerDefinition } from './definition.ts'

/**
 * Whose credentials a server may see. `account`: those of the account of the host, if {@link ServerTraits.isHosted} and the rest of the
 * rule hold; `sign-in`: what a person got by signing in to this server; `configured`: only what its own entry names.
 */
export type CredentialSource = 'account' | 'sign-in' | 'configured' | 'none'

/** The differences between servers, as data. */
export interface ServerTraits {
  readonly isHosted: boolean
  /** Items of one listing of tools: 8,192 for hosted servers, else 2,048. */
  readonly catalogItemLimit: number
  /** Connections of one account see each other's listing. Never where the entry brings a token of its own: that may be another account. */
  readonly sharesToolCache: boolean
  /** A call carries the vendor's own object of the tool back to the server. */
  readonly passesMeta: boolean
  readonly credentialSource: CredentialSource
}

/** Items of one listing of a server that is not hosted. */
const CATALOG_ITEMS_MAX = 2_048
const HOSTED_CATALOG_ITEMS_MAX = 8_192

/** The traits of a definition. Pure. */
export function resolveTraits(definition: ServerDefinition): ServerTraits {
  const { hosted: isHosted } = definition
  const credentialSource = credentialSourceOf(definition)
  return {
    isHosted,
    catalogItemLimit: isHosted ? HOSTED_CATALOG_ITEMS_MAX : CATALOG_ITEMS_MAX,
    sharesToolCache: isHosted && credentialSource === 'account',
    passesMeta: isHosted,
    credentialSource,
  }
}

/** What the entry names itself comes first: whoever wrote it down meant it, whether its variable is set today or not. */
function credentialSourceOf({ transport, auth }: ServerDefinition): CredentialSource {
  if (transport.kind === 'stdio') return 'none'
  if (namesAuthorization(transport)) return 'configured'
  switch (auth) {
    case 'account':
      return 'account'
    case 'oauth':
      return 'sign-in'
    case 'none':
      return 'none'
  }
}

function namesAuthorization({
  headers,
  envHeaders,
  bearerTokenEnvVar,
}: Extract<ServerDefinition['transport'], { kind: 'http' }>): boolean {
  if (bearerTokenEnvVar !== undefined) return true
  return [...Object.keys(headers), ...Object.keys(envHeaders)].some((name) => name.toLowerCase() === 'authorization')
}
