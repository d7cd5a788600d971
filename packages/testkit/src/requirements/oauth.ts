import type { Requirement } from './requirement.ts'

const rows: readonly (readonly [id: string, text: string, source: string])[] = [
  [
    'auth.040',
    'a challenge is read to the letter: several schemes and headers, quotes and escapes; what is written twice or badly is not there',
    'RFC 9110 11.6.1; 03 §4.3',
  ],
  [
    'auth.041',
    'scopes come from whoever signs in, then the entry, the refusal and the metadata; an empty list means none; a step-up asks for all of them together',
    '03 §5.4; MCP 2026-07-28, Scope Selection, Step-Up',
  ],
  [
    'auth.043',
    'the way to sign in is found at the place that the refusal names, then at the path, then at the root',
    'RFC 9728 3.1; MCP 2025-11-25, Protected Resource Metadata Discovery',
  ],
  ['auth.044', 'metadata about another server is dropped, and nobody is asked with its name', 'A07.3'],
  [
    'auth.045',
    'metadata of an authorization server counts only for exactly the issuer that it was looked for, to the last character',
    'A07.2, A07.5; RFC 8414 3.3',
  ],
  [
    'auth.046',
    'a server without any metadata is its own authorization server at its own origin, and not in the name of another one',
    'A07.4; MCP 2025-03-26',
  ],
  [
    'auth.047',
    'a URL in metadata that is not https, or is no plain URL, is refused with the name of its field before anything is asked or opened',
    'A57.1, A08.1',
  ],
  [
    'auth.048',
    'the metadata of a server on the Internet leads to no private address, in whatever notation; one on this machine may lead to this machine',
    'A19.1, A19.2',
  ],
  [
    'auth.049',
    'an authorization server that does not announce PKCE with S256 is not used',
    'A53; MCP, Authorization Code Protection',
  ],
  [
    'auth.050',
    'the page of one authorization server is never combined with the token endpoint of another',
    'A28; 03 §5.3',
  ],
  ['auth.051', 'an issuer that the entry names is the only one that is used', 'A07'],
  ['auth.052', 'finding out how to sign in ends at its limits of time and size, and follows no redirect', 'A19, A47'],
  ['auth.053', 'whether a server wants a sign-in is known without opening anything', '03 §5.2'],
  [
    'auth.054',
    'a configured client comes before a document and a document before a registration; without any of them it is said what to put into the entry',
    '03 §5.4; MCP 2026-07-28, Client Registration',
  ],
  [
    'auth.055',
    'an answer to a registration counts only with the redirect URI and the authentication that were asked for',
    'RFC 7591 3.2.1',
  ],
  [
    'auth.056',
    'the callback takes one GET of its own path and host with the right state, and waits on after everything else',
    'A38.1, A03',
  ],
  ['auth.057', 'a port that is taken is an error that names the setting', 'A38.3'],
  [
    'auth.058',
    'after a success, a failure, the end of the time and an abort the callback is closed and nothing runs on',
    'A38.2',
  ],
  ['auth.059', 'the page after the sign-in is static, without scripts and without anything of what came', 'A38.5'],
  [
    'auth.060',
    'where the browser cannot come back, the address that it ended at is pasted, under the same rules',
    '03 §5.4',
  ],
  [
    'auth.061',
    'a person signs in at a real authorization server: registration, PKCE, resource, scopes, tokens that the server takes',
    '03 §5.4',
  ],
  ['auth.062', 'a configured client signs in with its secret, whatever characters are in it', 'RFC 6749 2.3.1'],
  [
    'auth.063',
    'the URL of a metadata document takes the place of a registration',
    'MCP 2025-11-25, Client ID Metadata Documents',
  ],
  [
    'auth.064',
    'scopes that only metadata names and the provider refuses are left out once; a refusal by a person is final; a step-up asks for the union',
    '03 §5.4; SEP-2350',
  ],
  [
    'auth.066',
    'an answer from another issuer or for another attempt is not redeemed, and nothing of it is shown',
    'A28; RFC 9207; MCP 2026-07-28, Authorization Response Validation',
  ],
  [
    'auth.067',
    'an answer with tokens is read to the letter: types, lifetimes, scopes, sizes; an error in it is an error',
    'RFC 6749 5.1, 5.2',
  ],
  [
    'auth.068',
    'a refresh keeps what the answer leaves out, says whether the refresh token rotated, and names the resource',
    'RFC 6749 6; RFC 8707',
  ],
  [
    'auth.069',
    'a refresh that fails says whether the refresh token may have been used up, and whether asking again can help',
    '03 §5.7',
  ],
  ['auth.070', 'a token endpoint that has gone is looked for at its issuer, and never at the server', 'A07.1'],
  [
    'auth.071',
    'a grant is given back: the refresh token, then the access token; a failure is told and nothing else',
    'RFC 7009',
  ],
  [
    'auth.072',
    'tokens are bound to a key where the server asks for it, nonces included, and an unbound one is not taken instead',
    'RFC 9449',
  ],
  [
    'auth.073',
    'a program without a person gets tokens with a secret or a key, only from the issuer that it expects',
    'RFC 6749 4.4; RFC 7523 2.2; SEP-1046',
  ],
  [
    'auth.074',
    'a token of the platform is exchanged for tokens, once, and a refusal is not tried another way',
    'RFC 7523 2.1; SEP-1933',
  ],
  [
    'auth.075',
    'an id token of a company is turned into tokens for a server by way of its identity provider',
    'SEP-990',
  ],
  [
    'auth.077',
    'an independent OAuth client comes to the same verdicts about the same servers and answers',
    'oauth4webapi',
  ],
  [
    'auth.078',
    'no code, verifier, state, secret or token is in any error or outcome, even where the other side sends it back',
    'A49.2',
  ],
  ['auth.080', 'each server has a callback path of its own that stays the same', '03 §5.4.2'],
]

export const oauth: readonly Requirement[] = rows.map(([id, text, source]) => ({ id, text, milestone: 3, source }))
