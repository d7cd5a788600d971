// Who the client under test is in a scenario: what the suite gives it beside the address, in the places where a person would put it.
import { rmSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EnterpriseSignIn, JsonObject, OauthSettings } from '@convoke/host'
import { endWithUs } from '../src/end-with-us.ts'

/** What the suite tells its client in `MCP_CONFORMANCE_CONTEXT`. */
export interface ScenarioContext {
  readonly client_id?: string
  readonly client_secret?: string
  readonly issuer?: string
  readonly private_key_pem?: string
  readonly valid_jwt?: string
  readonly idp_issuer?: string
  readonly idp_client_id?: string
  readonly idp_id_token?: string
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: JsonObject }[]
}

/** One scenario of the suite. */
export interface Scenario {
  readonly name: string
  /** The server. */
  readonly url: string
  readonly context: ScenarioContext
}

/** Who signs in, and with what. Its files are there until it is disposed, and not after this process. */
export interface ClientIdentity extends Disposable {
  /** For the entry of the server; undefined: nothing is known of its authorization server. */
  readonly oauth: OauthSettings | undefined
  readonly enterprise: EnterpriseSignIn | undefined
  /** The variables that {@link oauth} names. */
  readonly env: Readonly<Record<string, string>>
}

const SECRET_VARIABLE = 'CONVOKE_CONFORMANCE_SECRET'

/** Puts secrets into variables, and keys and tokens into files that only this user can read. */
export async function openIdentity(scenario: Scenario): Promise<ClientIdentity> {
  const { client_id: clientId, client_secret: secret, issuer } = scenario.context
  const files = new SecretFiles()
  const grant = await grantOf(scenario, files)
  const named: OauthSettings = {
    ...(clientId === undefined ? {} : { clientId }),
    ...(secret === undefined ? {} : { clientSecretEnvVar: SECRET_VARIABLE }),
    ...(issuer === undefined ? {} : { issuer }),
    ...grant,
  }
  return {
    oauth: Object.keys(named).length === 0 ? undefined : named,
    enterprise: enterpriseOf(scenario.context),
    env: secret === undefined ? {} : { [SECRET_VARIABLE]: secret },
    [Symbol.dispose]: () => files[Symbol.dispose](),
  }
}

/** How tokens are had where nobody signs in. */
async function grantOf(scenario: Scenario, files: SecretFiles): Promise<OauthSettings> {
  const { private_key_pem: key, valid_jwt: assertion, idp_issuer: provider } = scenario.context
  if (provider !== undefined) return { grant: 'enterprise', ...(await announced(scenario)) }
  if (assertion !== undefined)
    return { grant: 'workload', assertionFile: await files.write(assertion), ...(await announced(scenario)) }
  if (key !== undefined)
    return { grant: 'client-credentials', privateKeyFile: await files.write(key), ...(await announced(scenario)) }
  // Nothing but the name tells it from a client that was registered beforehand.
  return scenario.name.startsWith('auth/client-credentials')
    ? { grant: 'client-credentials', ...(await announced(scenario)) }
    : {}
}

/** What an administrator looks up before writing the entry: such a grant goes to no issuer that the entry does not name, and the suite names none. */
async function announced({ url, context }: Scenario): Promise<Pick<OauthSettings, 'issuer'>> {
  if (context.issuer !== undefined) return { issuer: context.issuer }
  const { origin, pathname } = new URL(url)
  const answer = await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`)
  const { authorization_servers: issuers } = (await answer.json()) as { authorization_servers?: readonly string[] }
  const [issuer] = issuers ?? []
  if (issuer === undefined) throw new Error('The server of the scenario names no authorization server')
  return { issuer }
}

function enterpriseOf({
  idp_issuer: issuer,
  idp_client_id: clientId,
  idp_id_token: idToken,
}: ScenarioContext): EnterpriseSignIn | undefined {
  if (issuer === undefined || clientId === undefined || idToken === undefined) return undefined
  return { issuer, clientId, idToken: async () => idToken }
}

class SecretFiles implements Disposable {
  readonly #folders: string[] = []
  readonly #release = endWithUs(() => this.#remove())

  async write(text: string): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'convoke-conformance-'))
    this.#folders.push(folder)
    const path = join(folder, 'secret')
    await writeFile(path, text, { mode: 0o600 })
    return path
  }

  [Symbol.dispose](): void {
    this.#release()
    this.#remove()
  }

  #remove(): void {
    for (const folder of this.#folders.splice(0)) rmSync(folder, { recursive: true, force: true })
  }
}
