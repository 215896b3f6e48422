/** Base64 for URLs, without padding (RFC 4648, section 5). */
export function base64Url(bytes: ArrayBuffer): string {
  const base64 = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
