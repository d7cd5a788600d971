// The HTTP half of the client, loaded when a server is reached over HTTP.
export { HttpChannel } from './http-channel.ts'
