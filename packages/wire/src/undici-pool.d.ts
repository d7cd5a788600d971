// The deep import loads a third of undici. Pinned with the version.
declare module 'undici/lib/dispatcher/pool.js' {
  export { Pool as default } from 'undici'
}
