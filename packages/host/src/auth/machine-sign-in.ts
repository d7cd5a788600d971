// Servers that this program signs in to by itself: no person is asked, and nothing is kept, because the tokens can be had again at any time.
import { HostError } from '../base/index.ts'
import type { ServerDefinition } from '../config/index.ts'
import type { MachineCredentials } from './oauth/machine-grants.ts'
import { recordId } from './record.ts'
import type { SignInEntry } from './sign-in-index.ts'

/** The identity provider of a company, for servers with `oauth.grant: 'enterprise'`. */
export interface EnterpriseSignIn {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret?: string
  /** A fresh id token of the person who works here, for the client above. */
  idToken(): Promise<string>
}

/** What a program can show. */
export interface MachineFacts {
  readonly clientSecret: string | undefined
  readonly enterprise: EnterpriseSignIn | undefined
  /** A key or a token in a file of the user, at most 64 KiB. */
  readFile(path: string): Promise<string>
}

/** Does the entry say that nobody is asked? */
export function isMachine({ oauth }: ServerDefinition): boolean {
  return oauth?.grant !== undefined && oauth.grant !== 'authorization-code'
}

/** Who a server is, to a sign-in. */
export function serverOf({ name, transport }: ServerDefinition): SignInEntry['server'] {
  return { name, url: transport.kind === 'http' ? transport.url : '' }
}

/** Stands in for a record: these tokens are in no store. */
export function machineEntry(definition: ServerDefinition): SignInEntry {
  const { issuer = '', clientId = '', resource = '' } = definition.oauth ?? {}
  const server = serverOf(definition)
  const id = recordId({ issuer, resource: `${resource} ${server.url}`, clientId, server: server.name })
  const store = 'memory'
  return { version: 1, server, recordId: id, grantId: id, store, issuer, resource, clientId, signedInAtMs: 0 }
}

/** The settings by which a sign-in is renewed: those of now, as long as they are about the same one. Pure. */
export function newestOf(known: ServerDefinition, newest: ServerDefinition | undefined): ServerDefinition {
  if (newest === undefined || isMachine(newest) !== isMachine(known)) return known
  const isSame = isMachine(known)
    ? machineEntry(newest).recordId === machineEntry(known).recordId
    : serverOf(newest).url === serverOf(known).url
  return isSame ? newest : known
}

/** What this program shows for the server. @throws {HostError} `VARIABLE_MISSING`: it has nothing to show. */
export async function machineCredentials(
  definition: ServerDefinition,
  { clientSecret, enterprise, readFile }: MachineFacts,
): Promise<MachineCredentials> {
  const { grant, clientId = '', privateKeyFile, assertionFile } = definition.oauth ?? {}
  if (grant === 'enterprise' && enterprise !== undefined) {
    const { issuer, clientId: ours, clientSecret: secret } = enterprise
    const identityProvider = { issuer, clientId: ours, clientSecret: secret, idToken: await enterprise.idToken() }
    return { kind: 'cross-app', clientId, clientSecret, identityProvider }
  }
  if (grant === 'workload' && assertionFile !== undefined)
    return { kind: 'workload', clientId, token: (await readFile(assertionFile)).trim() }
  if (grant === 'client-credentials' && privateKeyFile !== undefined)
    return { kind: 'private-key', clientId, privateKey: await readFile(privateKeyFile) }
  if (grant === 'client-credentials' && clientSecret !== undefined)
    return { kind: 'client-secret', clientId, clientSecret }
  throw new HostError('VARIABLE_MISSING', `Server "${definition.name}": ${missingFor(definition)}`, {
    details: { server: definition.name },
  })
}

function missingFor({ oauth: settings }: ServerDefinition): string {
  if (settings?.grant === 'enterprise') return 'this program has no identity provider for oauth.grant "enterprise"'
  const variable = settings?.clientSecretEnvVar
  return variable === undefined
    ? `oauth.grant "${settings?.grant}" needs credentials of this program`
    : `the variable ${variable} (oauth.clientSecretEnvVar) is not set`
}
