import { AS_IS, type Requirement, type ScenarioOrigin } from './requirement.ts'

const LIMIT: ScenarioOrigin = {
  kind: 'replaced',
  because: 'decision 27: one limit, messageBytesMax, 64 MiB by default, in both eras',
}
const SESSION = '03 §10 "HTTP session"'
const LIMITS = '03 §10 "Limits"'
const HELPER = '03 §4.8'
const REFUSED = '03 §5.8'
const TIME = '03 §3.3, §5.7'
const DPOP = 'RFC 9449'

/** Credentials on the wire, and the scenarios of HTTP sessions and limits. */
export const oauthHttp: readonly Requirement[] = [
  {
    id: 'http.001',
    text: 'after one 404 the session is made anew and the call is sent again',
    milestone: 3,
    source: SESSION,
    origin: AS_IS,
  },
  {
    id: 'http.002',
    text: 'after two 404s in a row the call fails, and the next call makes a session',
    milestone: 3,
    source: SESSION,
    origin: AS_IS,
  },
  {
    id: 'http.003',
    text: 'a configured bearer that is refused twice is two failures: nothing is recovered, and nothing is sent again',
    milestone: 3,
    source: SESSION,
    origin: AS_IS,
  },
  {
    id: 'http.004',
    text: 'a 403 for want of scope fails with its status and its whole challenge, and is sent again only where the source of the credentials says so',
    milestone: 3,
    source: SESSION,
    origin: {
      kind: 'reworded',
      because: 'the typed error is "unauthorized" with status and challenge; a step-up is the decision of the source',
    },
  },
  {
    id: 'http.005',
    text: 'a challenge in a second header line is heard',
    milestone: 3,
    source: SESSION,
    origin: AS_IS,
  },
  {
    id: 'http.006',
    text: 'a JSON answer of exactly the limit is accepted',
    milestone: 3,
    source: LIMITS,
    origin: AS_IS,
  },
  {
    id: 'http.007',
    text: 'a chunked JSON answer of one byte more is refused',
    milestone: 3,
    source: LIMITS,
    origin: AS_IS,
  },
  {
    id: 'http.008',
    text: 'an event over the limit fails the call that waits for it while the stream is still open',
    milestone: 3,
    source: LIMITS,
    origin: { kind: 'reworded', because: 'no time is asserted: the stream of the test never ends by itself' },
  },
  {
    id: 'http.009',
    text: 'a client made without a limit is unaffected',
    milestone: 3,
    source: LIMITS,
    origin: { kind: 'dropped', because: 'decision 27: there is no client without a limit' },
  },
  {
    id: 'http.010',
    text: 'an answer to initialize that declares more than the limit is refused before its body comes, after exactly one request',
    milestone: 3,
    source: LIMITS,
    origin: { kind: 'reworded', because: 'no time is asserted: the body of the test never comes' },
  },
  {
    id: 'http.011',
    text: 'in the modern era discovery, JSON, error bodies and events over the limit do not come through',
    milestone: 3,
    source: LIMITS,
    origin: LIMIT,
  },
  {
    id: 'http.012',
    text: 'in the legacy era an answer of more than 8 MiB is accepted, up to the limit',
    milestone: 3,
    source: LIMITS,
    origin: LIMIT,
  },
  {
    id: 'http.013',
    text: 'a stream that is refused for its token is asked for once; the next operation renews the token, the stream is opened again, and DELETE carries the new token',
    milestone: 3,
    source: '03 §4.5, §10 "Refresh"',
    origin: { kind: 'reworded', because: 'the session itself is good and is kept; only its stream is opened again' },
  },
  {
    id: 'http.020',
    text: 'a request that was refused with a token that is not the newest any more is sent again with the newest, and nobody is asked for another',
    milestone: 3,
    source: REFUSED,
  },
  {
    id: 'http.021',
    text: 'a request whose tokens are refused one after the other is sent at most four times, and what others have obtained is never adopted twice in a row',
    milestone: 3,
    source: REFUSED,
  },
  {
    id: 'http.022',
    text: 'requests that were refused with different tokens do not share a challenge',
    milestone: 3,
    source: REFUSED,
  },
  {
    id: 'http.023',
    text: 'the time that credentials take is not the time of the call, neither of its idle limit nor of its total one',
    milestone: 3,
    source: TIME,
  },
  {
    id: 'http.024',
    text: 'the time that credentials take is not the time of a start, and what was left of its budget before is left after',
    milestone: 3,
    source: TIME,
  },
  { id: 'http.025', text: 'the time that credentials take is not the time of a listing', milestone: 3, source: TIME },
  {
    id: 'http.026',
    text: 'whoever has the credentials and says nothing for 120 s fails the request, which has not been sent',
    milestone: 3,
    source: TIME,
  },
  {
    id: 'http.027',
    text: 'a call that is aborted while its credentials are being obtained settles at once, sends nothing more, and takes nothing from others who wait for the same',
    milestone: 3,
    source: REFUSED,
  },
  {
    id: 'http.028',
    text: 'a call whose time was over when the asking began fails for its time and is not sent',
    milestone: 3,
    source: REFUSED,
  },
  { id: 'http.029', text: 'each time something is sent the source of the credentials is asked once', milestone: 3 },
  {
    id: 'http.030',
    text: 'where tokens are bound to a key, each POST, GET and DELETE carries a new proof for its own method and URL',
    milestone: 3,
    source: `${DPOP} 4`,
  },
  {
    id: 'http.031',
    text: 'a server that wants its nonce in the proof gets a new proof once, without the token counting as refused; nonces in any other answer are heard too',
    milestone: 3,
    source: `${DPOP} 8.2, 9`,
  },
  {
    id: 'http.032',
    text: 'a request with a proof is neither redirected nor repeated with the same proof',
    milestone: 3,
    source: `${DPOP} 11.1`,
  },
  {
    id: 'http.033',
    text: 'a refused answer to a question of the server asks nobody for credentials, and a refused notification asks once',
    milestone: 3,
    source: REFUSED,
  },
  {
    id: 'http.034',
    text: 'a stream that is refused is asked for once with each token, also when the token was renewed while it was being refused',
    milestone: 3,
    source: '03 §4.5',
  },
  {
    id: 'http.035',
    text: 'one call survives the loss of its session and of its token, in either order',
    milestone: 3,
    source: '03 §4.4',
  },
  { id: 'http.036', text: 'no redirect takes Authorization or DPoP to another origin', milestone: 3, source: 'A20' },
  {
    id: 'http.037',
    text: 'a server that repeats an older token, a proof or a challenge with a token in it does not bring them into an error',
    milestone: 3,
    source: 'A49',
  },
  {
    id: 'http.038',
    text: 'the rest of a call whose stream broke is read with a renewed token when the old one is refused',
    milestone: 3,
    source: REFUSED,
  },
  {
    id: 'http.039',
    text: 'calls that wait for a new session do not pay for the sign-in of its handshake',
    milestone: 3,
    source: TIME,
  },
  {
    id: 'http.050',
    text: 'a headers helper is not asked again for a 403 that is about scope',
    milestone: 3,
    source: HELPER,
  },
  {
    id: 'http.051',
    text: 'the Authorization of a sign-in wins over that of a headers helper, and a helper that changes only that has changed nothing',
    milestone: 3,
    source: HELPER,
  },
  {
    id: 'http.052',
    text: 'what a headers helper gives stays on the origin of its server, and is checked before it is used',
    milestone: 3,
    source: HELPER,
  },
  { id: 'http.053', text: 'the time of a headers helper is the time of the call', milestone: 3, source: HELPER },
]
