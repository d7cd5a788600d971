// Which addresses the documents of a server may lead to: no more private ones than the server itself has.
import { type AddressRule, placeOf } from './endpoints.ts'
import type { OAuthPort } from './port.ts'
import { SignInError } from './sign-in-error.ts'

const WIDTH: Readonly<Record<AddressRule, number>> = { public: 0, 'public-or-loopback': 1, any: 2 }

/**
 * What a URL that a person wrote lets others name: a server of the public Internet nothing but that, one on this machine this machine too, one of a private
 * network everything.
 */
export async function addressesFor(url: string, port: OAuthPort): Promise<AddressRule> {
  switch (await port.reach(new URL(url).hostname)) {
    case 'private':
      return 'any'
    case 'loopback':
      return 'public-or-loopback'
    case 'public':
    case 'unknown':
      return 'public'
  }
}

/** The rule of the two that lets more through. */
export function widerAddresses(one: AddressRule, other: AddressRule): AddressRule {
  return WIDTH[one] >= WIDTH[other] ? one : other
}

/** @throws {SignInError} `endpoint-refused`: the URL leads to where the rule does not let it. */
export async function checkReach(
  url: string,
  { field, addresses, port }: { field: string; addresses: AddressRule; port: OAuthPort },
): Promise<void> {
  if (addresses === 'any') return
  const reach = await port.reach(new URL(url).hostname)
  if (reach === 'public' || reach === 'unknown' || (reach === 'loopback' && addresses === 'public-or-loopback')) return
  const where = reach === 'loopback' ? 'this machine' : 'a private network'
  throw new SignInError(
    'endpoint-refused',
    `"${field}" is ${placeOf(url)}, which leads to ${where}: a server from elsewhere may not send us there`,
    { field, url: placeOf(url) },
  )
}
