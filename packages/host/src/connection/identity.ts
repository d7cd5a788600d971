// What must be equal for one running connection to serve two configurations.
import { canonicalJson, digestHex, type JsonObject } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'

/** Compared, never shown: the values behind it are digested. */
export interface ConnectionIdentity {
  /** Digest of everything that shaped the transport: command, URL, headers, environment and the variables it reads. */
  readonly configKey: string
  /** Who the connection speaks as; `undefined` when credentials could not be read. */
  readonly credentials: CredentialKey | undefined
}

/** `null`: read successfully, and there are none. */
export type CredentialKey = string | null

/** How much of two identities agrees. */
export type IdentityMatch = 'same' | 'same-config' | 'different'

/** Pure. */
export function matchIdentity(current: ConnectionIdentity, desired: ConnectionIdentity): IdentityMatch {
  if (current.configKey !== desired.configKey) return 'different'
  return current.credentials === desired.credentials ? 'same' : 'same-config'
}

/** The identity of a definition under an environment; credentials of a sign-in are added by whoever holds them. */
export function connectionIdentity(
  { transport, environment, auth, messageBytesMax }: ServerDefinition,
  env: Readonly<Record<string, string | undefined>>,
): ConnectionIdentity {
  const variables =
    transport.kind === 'stdio'
      ? transport.envVars
      : [...Object.values(transport.envHeaders), transport.bearerTokenEnvVar ?? '']
  const values = [...new Set(variables)].sort().map((name) => [name, env[name] ?? null])
  return new LazyIdentity({ transport, environment, auth, messageBytesMax, values })
}

/** Most hosts are never given a second configuration: the digest is made when it is first compared. */
class LazyIdentity implements ConnectionIdentity {
  readonly credentials = null
  #content: JsonObject | undefined
  #configKey: string | undefined

  /** @param content What is digested; by reference, so that an identity nobody compares is small. */
  constructor(content: JsonObject) {
    this.#content = content
  }

  get configKey(): string {
    if (this.#configKey === undefined) {
      this.#configKey = digestHex(canonicalJson(this.#content), 64)
      this.#content = undefined
    }
    return this.#configKey
  }
}
