import type { Requirement } from './requirement.ts'

const EVENT_STREAM = 'HTML, Server-sent events, 9.2.5 and 9.2.6'

export const http: readonly Requirement[] = [
  {
    id: 'wire.100',
    text: 'over HTTP what the server asks or says on the stream of a call is known to belong to that call',
    milestone: 1,
    source: 'MCP 2025-11-25, Streamable HTTP, Sending Messages to the Server',
  },
  {
    id: 'wire.101',
    text: 'a modern HTTP call is cancelled by ending its exchange, without a notification',
    milestone: 1,
    source: 'MCP 2026-07-28, Streamable HTTP, Cancellation',
  },
  {
    id: 'wire.102',
    text: 'a legacy HTTP call is cancelled by one notification, and the session goes on',
    milestone: 1,
    source: 'MCP 2025-11-25, Cancellation',
  },
  {
    id: 'wire.103',
    text: 'over HTTP a message over the cap fails its own call and nothing else',
    milestone: 1,
    source: 'A47',
  },
  {
    id: 'wire.104',
    text: 'an HTTP answer that is no MCP answer fails its call with the status and a short clean preview',
    milestone: 1,
  },
  {
    id: 'wire.110',
    text: 'a forgotten session (404 of any kind, 400, "not initialized") is made anew once for all calls, and each call is sent again',
    milestone: 1,
    source: 'MCP 2025-11-25, Streamable HTTP, Session Management',
  },
  {
    id: 'wire.111',
    text: 'a server that keeps forgetting gets each call at most twice, and every forgotten session is deleted',
    milestone: 1,
  },
  {
    id: 'wire.112',
    text: 'a 404 on the GET stream alone does not end a good session',
    milestone: 1,
  },
  {
    id: 'wire.113',
    text: 'a tool call whose connection broke after it was sent is reported as sent and never sent again',
    milestone: 1,
  },
  {
    id: 'wire.130',
    text: 'an event stream is read by the rules of the HTML standard, however its bytes are cut into chunks',
    milestone: 1,
    source: EVENT_STREAM,
  },
  {
    id: 'wire.131',
    text: 'an event over the cap is dropped, whatever fills it, and the events after it are read',
    milestone: 1,
    source: 'A47',
  },
  {
    id: 'wire.140',
    text: 'a legacy server behind a redirect on its own origin is found, with the method and the credentials kept',
    milestone: 1,
    source: 'RFC 9110 15.4',
  },
  {
    id: 'wire.141',
    text: 'a request that met a connection closed while idle is sent again where that is harmless, and never a tool call',
    milestone: 1,
    source: 'RFC 9112 9.3.1',
  },
  {
    id: 'wire.142',
    text: 'a server that cannot be reached is told apart by name, port and reason, and nothing counts as sent',
    milestone: 1,
  },
  {
    id: 'security.030',
    text: 'a content encoding that was not asked for is refused by the headers, before any byte of the body is decoded',
    milestone: 1,
    source: 'A01',
  },
  {
    id: 'security.031',
    text: 'an answer that unpacks out of proportion fails its call, and memory stays small',
    milestone: 1,
    source: 'A47, A52',
  },
  {
    id: 'security.032',
    text: 'no redirect leads a request, its headers or its body to another origin',
    milestone: 1,
    source: 'A20',
  },
  {
    id: 'security.033',
    text: 'no header can smuggle another one in, or change what carries the message',
    milestone: 1,
    source: 'A51, CVE-2022-31150',
  },
  {
    id: 'security.034',
    text: 'requests to addresses that others name go over https, or to this machine',
    milestone: 1,
    source: 'A57',
  },
  {
    id: 'wire.150',
    text: 'a server with a certificate of a private authority is reached with "ca", and without it the message says so',
    milestone: 1,
  },
  {
    id: 'wire.151',
    text: 'the proxies of the environment are used: a tunnel for https, whole URLs for http, their password for the proxy alone',
    milestone: 1,
    source: 'RFC 9110 9.3.6, RFC 9112 3.2.2',
  },
  {
    id: 'wire.152',
    text: 'a proxy that refuses, is gone or cannot be used is named, and its password is never shown',
    milestone: 1,
    source: 'A49',
  },
  {
    id: 'wire.153',
    text: 'NO_PROXY and the proxy variables mean what they mean elsewhere',
    milestone: 1,
  },
  {
    id: 'security.035',
    text: 'certificates are checked whatever the environment says: authority, name and date',
    milestone: 1,
    source: 'A57',
  },
  {
    id: 'wire.160',
    text: 'requests that were refused together wait for one renewal of the credentials, which hears every challenge of the server',
    milestone: 1,
    source: 'RFC 9110 11.6.1',
  },
  {
    id: 'wire.161',
    text: 'credentials are renewed at most three times for one request; then the caller gets the status and the challenge',
    milestone: 1,
  },
  {
    id: 'wire.162',
    text: 'a GET stream that is refused for want of credentials is not asked for again until they were renewed',
    milestone: 1,
  },
  {
    id: 'wire.163',
    text: 'headers of a helper are asked for once, again after a refusal, and sent again only if they changed',
    milestone: 1,
  },
  {
    id: 'security.036',
    text: 'a server that repeats the secrets it was sent does not bring them into an error message',
    milestone: 1,
    source: 'A49',
  },
  {
    id: 'wire.120',
    text: 'a legacy call whose stream broke is resumed from its last event, as late as the server asked, without being sent again',
    milestone: 1,
    source: 'MCP 2025-11-25, Streamable HTTP, Resumability and Redelivery',
  },
  {
    id: 'wire.121',
    text: 'a stream that cannot be resumed fails its call as sent, after five attempts that brought nothing',
    milestone: 1,
  },
  {
    id: 'wire.122',
    text: 'the stream of a legacy server is opened again after each drop, and its notifications go on',
    milestone: 1,
    source: 'MCP 2025-11-25, Streamable HTTP, Listening for Messages from the Server',
  },
  {
    id: 'wire.123',
    text: 'a stream that fails is asked for later and later, and no more where asking again is useless',
    milestone: 1,
  },
  {
    id: 'wire.170',
    text: 'servers that know only HTTP+SSE of 2024-11-05 are served, whether that is configured or found out',
    milestone: 1,
    source: 'MCP 2025-11-25, Transports, Backwards Compatibility',
  },
  {
    id: 'wire.171',
    text: 'when the event stream of an HTTP+SSE server breaks its calls fail as sent, and the next ones go over a new session',
    milestone: 1,
  },
  {
    id: 'security.037',
    text: 'the endpoint that an HTTP+SSE server names is used on its own origin only',
    milestone: 1,
    source: 'A20',
  },
  {
    id: 'wire.180',
    text: 'servers on SDK v1 work over HTTP, with and without sessions, with JSON and with event streams',
    milestone: 1,
  },
  {
    id: 'wire.181',
    text: 'servers on SDK v2 work over HTTP in both eras',
    milestone: 1,
  },
  {
    id: 'wire.182',
    text: 'a modern server over HTTP tells what was subscribed to and nothing else, also after its stream had dropped',
    milestone: 1,
    source: 'MCP 2026-07-28, Subscriptions',
  },
  {
    id: 'wire.183',
    text: 'a legacy resource subscription over HTTP survives the loss of its session',
    milestone: 1,
  },
  {
    id: 'wire.190',
    text: 'a modern request repeats method, name and annotated arguments in headers, and a mismatch is told as such',
    milestone: 1,
    source: 'MCP 2026-07-28, Streamable HTTP, Request Metadata',
  },
  {
    id: 'wire.191',
    text: 'values that a header cannot carry as they are travel in Base64',
    milestone: 1,
    source: 'MCP 2026-07-28, Streamable HTTP, Value Encoding',
  },
  {
    id: 'security.038',
    text: 'a tool whose schema names a header that it may not name is rejected, and only that tool',
    milestone: 1,
    source: 'A51',
  },
  {
    id: 'security.039',
    text: 'private, local and reserved addresses are told from public ones in every way they can be written',
    milestone: 1,
    source: 'A19',
  },
]
