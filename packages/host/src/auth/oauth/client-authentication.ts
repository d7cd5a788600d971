// How a client shows at the token endpoint who it is (RFC 6749, 2.3.1).
import type { AddClientAuthentication } from '@modelcontextprotocol/client'
import type { IssuerFacts } from '../grant.ts'
import type { ClientInUse } from './flow.ts'

/** The ways that are used for an ordinary client. */
export type ClientAuthMethod = 'none' | 'client_secret_basic' | 'client_secret_post'

const METHODS: readonly string[] = ['client_secret_basic', 'client_secret_post', 'none']

/** What the registration said, then what the authorization server takes; `client_secret_basic` is what counts when it does not say (RFC 8414, 2). Pure. */
export function chooseClientAuth(
  { client, secret }: ClientInUse,
  { tokenEndpointAuthMethods }: IssuerFacts,
): ClientAuthMethod {
  if (secret === undefined) return 'none'
  const registered = client.tokenEndpointAuthMethod
  if (registered !== undefined && METHODS.includes(registered)) return registered as ClientAuthMethod
  if (tokenEndpointAuthMethods === undefined || tokenEndpointAuthMethods.includes('client_secret_basic'))
    return 'client_secret_basic'
  return 'client_secret_post'
}

/** Adds it to a request. Id and secret are form-encoded inside of Basic, as the RFC asks: colons, percent signs and other scripts come through. */
export function clientAuthentication(inUse: ClientInUse, issuer: IssuerFacts): AddClientAuthentication {
  const { client, secret = '' } = inUse
  const method = chooseClientAuth(inUse, issuer)
  return (headers, parameters) => {
    if (method === 'client_secret_basic') {
      const pair = `${formEncode(client.id)}:${formEncode(secret)}`
      headers.set('authorization', `Basic ${Buffer.from(pair).toString('base64')}`)
      return
    }
    parameters.set('client_id', client.id)
    if (method === 'client_secret_post') parameters.set('client_secret', secret)
  }
}

/** As the body of a form writes a value. */
export function formEncode(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1)
}
