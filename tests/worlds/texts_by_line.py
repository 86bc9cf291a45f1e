"""Texts in many styles, each a line: with a secret (`$SECRET`), and without one.

The two characters of a line's escape stand for a new line.
"""


def _texts(lines: str) -> tuple[str, ...]:
    return tuple(
        line.replace("\\n", "\n").replace("\\r", "\r") for line in lines.strip().split("\n")
    )


SECRET = _texts(r"""
keytool -genkeypair -alias a -storepass changeme1 -keypass $SECRET -keystore k.jks
keytool -importkeystore -srckeystore a.p12 -srcstorepass Abc123xyz -deststorepass $SECRET -destkeypass $SECRET
jarsigner -keystore k.jks -storepass Abc1234 -keypass $SECRET app.jar alias
keytool error: the password you entered ($SECRET) is too short
The password you entered ($SECRET) does not match our records
You entered the password "$SECRET" which has expired
OTP verification failed: otp=$SECRET user=ann
request: user=ann&otp=$SECRET&step=2
https://sso.bank.example/verify?otp=$SECRET&user=ann
login refused (pin=$SECRET, card=4711)
{"user": "ann", "pin": "$SECRET"}
{"mfaCode": "$SECRET", "user": "ann"}
mfa_code=$SECRET rejected for ann
Authorization: Digest username="ann", realm="r", nonce="abc", uri="/x", response="$SECRET", opaque="5c"
WWW-Authenticate failed: Digest username="ann", realm="bank", response=$SECRET
Authorization: AWS4-HMAC-SHA256 Credential=AKIAQ7ZK3LMNOPQRSTUV/20261129/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=$SECRET
Authorization: Negotiate $SECRET
Authorization: Hawk id="dh37", ts="1353832234", nonce="j4h3g2", mac="$SECRET"
Authorization: OAuth oauth_consumer_key="abc", oauth_token="$SECRET", oauth_signature="x"
Authorization: SharedKey lake:$SECRET
Authorization: ApiKey $SECRET
X-Api-Key: $SECRET
x-functions-key: $SECRET
Ocp-Apim-Subscription-Key: $SECRET
X-Vault-Token: $SECRET
X-Amz-Security-Token=$SECRET
X-Shopify-Access-Token: $SECRET
X-CSRF-Token: $SECRET
Api-Key: $SECRET
apikey $SECRET is not allowed to call /v1
DD-API-KEY: $SECRET
DD_API_KEY=$SECRET datadog-agent run
NEW_RELIC_LICENSE_KEY=$SECRET
license key: $SECRET
licenseKey="$SECRET"
Activation code: $SECRET
Your verification code is $SECRET
Your one-time password is $SECRET. It expires in 5 minutes.
temporary password: $SECRET
Initial admin password: $SECRET
Please use the following password to proceed to installation: $SECRET
Generated password: $SECRET
Password has been set to $SECRET
password changed from OldOne2024 to $SECRET
New password for user ann: $SECRET
password reset for ann, new value: $SECRET
Using password '$SECRET' from config
using default password ($SECRET)
wrong password "$SECRET" for user ann
wrong password: $SECRET
bad password [$SECRET]
Password [$SECRET] rejected
incorrect password <$SECRET>
Login failed for user 'sa' with password '$SECRET'.
ann:$SECRET@db.bank.example:5432/bank refused
tcp://ann:$SECRET@broker:9000
amqp://guest:$SECRET@rabbit:5672/%2F
amqps://svc:$SECRET@b-1.mq.eu-west-1.amazonaws.com:5671
redis://:$SECRET@cache:6379/0
rediss://default:$SECRET@cache:6380
mongodb+srv://etl:$SECRET@cluster0.mongodb.net/bank?retryWrites=true
ftp://ann:$SECRET@ftp.bank.example/in/f.csv
sftp://ann:$SECRET@sftp.bank.example:22/in
smb://BANK;ann:$SECRET@files/share
ldap://cn=admin,dc=bank:$SECRET@ldap:389
mssql+pyodbc://sa:$SECRET@db/bank?driver=ODBC+Driver+18
snowflake://ann:$SECRET@acme/bank/public?warehouse=wh
trino://ann:$SECRET@trino:443/hive
clickhouse+native://default:$SECRET@ch/bank
bolt+s://neo4j:$SECRET@graph:7687
nats://svc:$SECRET@nats:4222
kafka: sasl.username=svc sasl.password=$SECRET
sasl_plain_password=$SECRET
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="svc" password="$SECRET";
ssl.key.password=$SECRET
ssl.keystore.password = $SECRET
ssl.truststore.password: $SECRET
schema.registry.basic.auth.user.info=svc:$SECRET
basic.auth.user.info=svc:$SECRET
basicAuth: svc:$SECRET
confluent kafka: api.secret=$SECRET
bootstrap.servers=b:9092 sasl.oauthbearer.client.secret=$SECRET
spring.datasource.password=$SECRET
spring.datasource.hikari.password: "$SECRET"
spring:\n  datasource:\n    username: ann\n    password: $SECRET\n
datasource:\n  pass: $SECRET\n  user: ann
jasypt.encryptor.password=$SECRET
quarkus.datasource.password=$SECRET
hibernate.connection.password=$SECRET
<property name="hibernate.connection.password">$SECRET</property>
<property name="password" value="$SECRET"/>
<connectionString>Server=db;User Id=sa;Password=$SECRET</connectionString>
<Password>$SECRET</Password>
<wsse:Password Type="PasswordText">$SECRET</wsse:Password>
<add name="Db" connectionString="Server=db;uid=sa;pwd=$SECRET"/>
<server><id>nexus</id><username>ann</username><password>$SECRET</password></server>
data:\n  password: $SECRET\nkind: Secret
stringData:\n  DB_PASSWORD: "$SECRET"
env:\n- name: API_TOKEN\n  value: "$SECRET"
{"name": "DB_PASSWORD", "value": "$SECRET"}
{"Key":"SecretAccessKey","Value":"$SECRET"}
{'ParameterKey': 'DBPassword', 'ParameterValue': '$SECRET'}
{"auths":{"r.example":{"auth":"$SECRET"}}}
{"type":"service_account","private_key_id":"abc","client_secret":"$SECRET"}
{"refresh_token":"$SECRET","scope":"x"}
{"data":{"password":["$SECRET"]}}
{"credentials":{"username":"ann","secret":"$SECRET"}}
{\"password\":\"$SECRET\"}
{"log":"{\"apiKey\":\"$SECRET\"}"}
{"stsToken": {"accessKeySecret": "$SECRET"}}
{"connectionString":"mongodb://ann:$SECRET@m1/bank"}
{"passwordConfirmation":"$SECRET"}
{"new_password":"$SECRET","old_password":"x1y2z3"}
{"userPassword": "$SECRET"}
{"pass_phrase":"$SECRET"}
{"encryptionKey":"$SECRET"}
{"sharedSecret":"$SECRET"}
{"cvv":"$SECRET"}
{"signingSecret":"$SECRET"}
{"webhookSecret":"$SECRET"}
{"saslPassword":"$SECRET"}
org.postgresql.util.PSQLException: FATAL: password authentication failed for user "ann" [password=$SECRET]
java.lang.IllegalStateException: Cannot connect with DataSource{user='ann', password='$SECRET', url='jdbc:postgresql://db/bank'}
java.lang.RuntimeException: ConnectionConfig(host=db, port=5432, user=ann, password=$SECRET)
Caused by: java.sql.SQLException: Config [user=ann, pwd=$SECRET]
com.bank.Credentials(user=ann,pass=$SECRET)
DbConfig(host='db', user='ann', password=SecretStr('$SECRET'))
KeyError: 'password=$SECRET'
ValueError: invalid literal for int() with base 10: 'pwd=$SECRET'
File "job.py", line 3, in <module>\n    conn = psycopg.connect(host="db", user="ann", password="$SECRET")
    password = "$SECRET"  # for now
    API_KEY: Final = "$SECRET"
const apiKey = "$SECRET";
const string Password = @"$SECRET";
String password = "$SECRET";
private static final String SECRET = "$SECRET";
var pwd := "$SECRET"
let token = `$SECRET`;
password := "$SECRET"
$password = '$SECRET';
$env:DB_PASSWORD = "$SECRET"
set DB_PASSWORD=$SECRET
setx API_TOKEN $SECRET
export TOKEN="$SECRET"
declare -x SNOWFLAKE_PASSWORD="$SECRET"
PGPASSWORD=$SECRET psql -h db
AWS_SESSION_TOKEN=$SECRET aws s3 ls
env GITHUB_TOKEN=$SECRET make
ENV API_TOKEN $SECRET
ARG NPM_TOKEN=$SECRET
docker login -u ann --password $SECRET r.example
docker login --username ann -p $SECRET
helm upgrade x --set-string db.password=$SECRET
helm upgrade x --set global.postgresql.auth.postgresPassword=$SECRET
terraform apply -var="db_password=$SECRET"
TF_VAR_db_password=$SECRET terraform plan
+ aws_secret_key = "$SECRET"
password    = "$SECRET" -> (known after apply)
ansible-vault view --vault-password $SECRET x
ansible all -e ansible_become_pass=$SECRET
ansible_ssh_pass: $SECRET
az sql server create --admin-password $SECRET
az keyvault secret set --vault-name v -n db --value $SECRET
aws secretsmanager create-secret --name db --secret-string $SECRET
aws secretsmanager put-secret-value --secret-id db --secret-string '{"password":"$SECRET"}'
aws cognito-idp admin-set-user-password --username ann --password $SECRET
aws iam create-login-profile --user-name ann --password $SECRET
echo -n "$SECRET" | gcloud secrets create db --data-file=-
vault write auth/userpass/login/ann password=$SECRET
vault kv put kv/db pass=$SECRET user=ann
consul kv put config/db/password $SECRET
etcdctl --user root:$SECRET get x
etcdctl --user root --password $SECRET get x
nats pub x y --user svc --password $SECRET
influx -username ann -password $SECRET
mysql -h db -u ann --password=$SECRET -e 'select 1'
mysql -h db -uann -p$SECRET bank
mysqldump --user ann --password='$SECRET' bank > x.sql
mysqlimport -u ann -p$SECRET bank t.csv
PSQL: postgres://ann:$SECRET@localhost/bank?sslmode=disable
pg_dump "postgresql://ann:$SECRET@db/bank"
psql "dbname=bank user=ann password=$SECRET sslmode=require"
pg_basebackup -d 'host=db user=repl password=$SECRET'
primary_conninfo = 'host=db user=repl password=$SECRET'
CREATE SUBSCRIPTION s CONNECTION 'host=db user=repl password=$SECRET dbname=bank' PUBLICATION p
CREATE USER ann WITH PASSWORD '$SECRET'
CREATE USER ann WITH ENCRYPTED PASSWORD '$SECRET' VALID UNTIL '2027-01-01'
ALTER USER ann IDENTIFIED BY "$SECRET"
ALTER USER ann IDENTIFIED BY $SECRET REPLACE old1old
CREATE USER 'ann'@'%' IDENTIFIED WITH caching_sha2_password BY '$SECRET'
GRANT ALL ON *.* TO 'ann'@'%' IDENTIFIED BY '$SECRET'
SET PASSWORD = PASSWORD('$SECRET')
SET PASSWORD FOR 'ann'@'localhost' = '$SECRET'
ALTER LOGIN sa WITH PASSWORD = '$SECRET' OLD_PASSWORD = 'x1y2z3'
CREATE LOGIN ann WITH PASSWORD = N'$SECRET', CHECK_POLICY = ON
CREATE MASTER KEY ENCRYPTION BY PASSWORD = '$SECRET'
OPEN SYMMETRIC KEY k DECRYPTION BY PASSWORD = '$SECRET'
CREATE DATABASE SCOPED CREDENTIAL c WITH IDENTITY = 'SHARED ACCESS SIGNATURE', SECRET = '$SECRET'
SELECT ENCRYPTBYKEY(KEY_GUID('k'), name), DECRYPTBYPASSPHRASE('$SECRET', name) FROM t
BACKUP DATABASE bank TO DISK = 'x' WITH MEDIAPASSWORD = '$SECRET'
CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw; CREATE USER MAPPING FOR ann SERVER s OPTIONS (user 'ann', password '$SECRET')
SELECT dblink_connect('c', 'host=db user=ann password=$SECRET')
COPY bank.t FROM 's3://b/k' CREDENTIALS 'aws_access_key_id=AKIAQ7ZK3LMNOPQRSTUV;aws_secret_access_key=$SECRET'
COPY INTO t FROM s3://b CREDENTIALS = (AWS_KEY_ID='AKIAQ7ZK3LMNOPQRSTUV' AWS_SECRET_KEY='$SECRET')
CREATE STAGE s URL='azure://a' CREDENTIALS=(AZURE_SAS_TOKEN='?sv=2022&sig=$SECRET')
CREATE SECRET pw TYPE = PASSWORD USERNAME = 'ann' PASSWORD = '$SECRET'
CREATE SECRET o TYPE = GENERIC_STRING SECRET_STRING = '$SECRET'
ALTER USER ann SET PASSWORD = '$SECRET' MUST_CHANGE_PASSWORD = TRUE
CREATE USER ann PASSWORD = '$SECRET' DEFAULT_ROLE = loader
CREATE EXTERNAL TABLE t OPTIONS (ACCESS_TOKEN="$SECRET")
CREATE CONNECTION c TYPE MYSQL OPTIONS (host 'db', user 'ann', password '$SECRET')
CREATE TABLE t (a Int32) ENGINE = MySQL('db:3306', 'bank', 't', 'ann', '$SECRET')
CREATE TABLE t ENGINE = S3('https://b.s3.amazonaws.com/f.csv', 'AKIAQ7ZK3LMNOPQRSTUV', '$SECRET', 'CSV')
SELECT * FROM postgresql('db:5432', 'bank', 't', 'ann', '$SECRET')
SELECT * FROM remote('ch:9000', 'bank', 't', 'ann', '$SECRET')
CREATE DICTIONARY d (id UInt64) SOURCE(CLICKHOUSE(HOST 'h' USER 'u' PASSWORD '$SECRET' DB 'bank'))
CREATE DATABASE LINK l CONNECT TO ann IDENTIFIED BY "$SECRET" USING 'db'
CREATE USER ann IDENTIFIED WITH plaintext_password BY '$SECRET'
SELECT AES_ENCRYPT(name, '$SECRET') FROM t
SELECT AES_DECRYPT(UNHEX(x), SHA2('$SECRET', 512)) FROM t
SELECT pgp_sym_decrypt(x::bytea, '$SECRET') FROM t
SELECT crypt('$SECRET', gen_salt('bf'))
UPDATE users SET password = '$SECRET' WHERE name = 'ann'
UPDATE users SET passwd = MD5('$SECRET') WHERE id = 1
UPDATE users SET password_hash = crypt('$SECRET', gen_salt('bf'))
SELECT * FROM users WHERE login = 'ann' AND password = '$SECRET'
SELECT * FROM users WHERE password = sha2('$SECRET', 256)
SELECT * FROM tokens WHERE api_token = '$SECRET'
INSERT INTO users (name, pwd) VALUES ('ann', '$SECRET')
INSERT INTO users (name, password) VALUES ('ann', sha1('$SECRET'))
INSERT INTO users SET name = 'ann', password = '$SECRET'
MERGE INTO users u USING s ON u.id = s.id WHEN MATCHED THEN UPDATE SET u.password = '$SECRET'
SELECT '$SECRET' AS password FROM dual
SELECT 'ann' AS name, '$SECRET' AS api_key
EXEC sp_addlinkedsrvlogin @rmtsrvname='s', @useself='false', @rmtuser='ann', @rmtpassword='$SECRET'
EXEC xp_cmdshell 'net use Z: \\files\share $SECRET /user:ann'
net use Z: \\files\share $SECRET /user:BANK\ann
net user ann $SECRET /add
runas: psexec \\host -u ann -p $SECRET cmd
schtasks /create /tn x /ru ann /rp $SECRET /tr job.cmd
sqlcmd -S db -U sa -P $SECRET -Q "select 1"
osql -U sa -P $SECRET
sqlplus ann/$SECRET@//db:1521/orcl
sqlplus 'ann/"$SECRET"@db'
impdp ann/$SECRET directory=d
impala-shell -i h -u ann --ldap_password=$SECRET
beeline -u "jdbc:hive2://h:10000" -n ann -p $SECRET
beeline -u 'jdbc:hive2://h:10000/default;user=ann;password=$SECRET'
hdfs dfs -Dfs.s3a.secret.key=$SECRET -ls s3a://b/
spark-submit --conf spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net=$SECRET job.py
spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net  $SECRET
--conf spark.ssl.keyStorePassword=$SECRET
spark.authenticate.secret=$SECRET
spark.openlineage.transport.auth.apiKey=$SECRET
spark.openlineage.transport.apiKey $SECRET
snowsql -a acme -u ann --password $SECRET
sfPassword -> $SECRET
Map(sfUser -> ann, sfPassword -> $SECRET, sfDatabase -> bank)
kinit -k failed; echo $SECRET | kinit ann@BANK
echo '$SECRET' | kinit ann@BANK.EXAMPLE
echo "$SECRET" | sudo -S systemctl restart x
echo "$SECRET" | passwd --stdin ann
echo 'ann:$SECRET' | chpasswd
usermod -p '$SECRET' ann
htpasswd -b .htpasswd ann $SECRET
htpasswd -bc .htpasswd ann $SECRET
htpasswd -nb ann $SECRET
net user ann $SECRET
net user svc-etl $SECRET /add
net use X: \\srv\share /user:ann $SECRET
ssh-keygen -t rsa -N "$SECRET" -f id
openssl rsa -in k.pem -passin pass:$SECRET
openssl pkcs12 -in a.p12 -password pass:$SECRET
curl -u ann:$SECRET https://api
curl --user ann:$SECRET --insecure https://api
curl -sSL -H "Authorization: token $SECRET" https://api.github.com
curl -H "X-API-Key: $SECRET" https://api
curl -H 'Api-Token: $SECRET' https://api
curl https://api/x?key=$SECRET
curl https://api/v1?api-key=$SECRET
curl -F password=$SECRET https://x
curl --data-urlencode "client_secret=$SECRET" https://sso
curl -x http://proxy:3128 --proxy-user ann:$SECRET https://x
http_proxy=http://ann:$SECRET@proxy:3128
HTTPS_PROXY="http://ann:$SECRET@proxy:3128"
wget --http-password=$SECRET https://x
wget --header="Authorization: Bearer $SECRET" https://x
git clone https://oauth2:$SECRET@gitlab.example/bank/etl.git
git clone https://$SECRET@github.com/bank/etl
git -c http.extraHeader="AUTHORIZATION: bearer $SECRET" fetch
pip install --index-url https://__token__:$SECRET@pypi.example/simple x
//npm.example/:_authToken=$SECRET
_password=$SECRET
machine api.example login ann password $SECRET
db:5432:bank:ann:$SECRET in .pgpass
s3cmd --access_key=AKIAQ7ZK3LMNOPQRSTUV --secret_key=$SECRET ls
mc alias set s3 https://s3.example AKIAQ7ZK3LMNOPQRSTUV $SECRET
rclone config create r s3 access_key_id x secret_access_key $SECRET
aws_access_key_id = AKIAQ7ZK3LMNOPQRSTUV\naws_secret_access_key = $SECRET
[default]\naws_secret_access_key=$SECRET
AccountName=lake;AccountKey=$SECRET==;EndpointSuffix=core.windows.net
SharedAccessSignature=sv=2022&sig=$SECRET&se=2026
Endpoint=sb://x/;SharedAccessKeyName=k;SharedAccessKey=$SECRET=;EntityPath=q
https://lake.dfs.core.windows.net/c/f?sv=2022-11-02&sp=r&sig=$SECRET
https://prod.westeurope.logic.azure.com/workflows/a/triggers/manual/paths/invoke?api-version=2016-10-01&sp=%2F&sv=1.0&sig=$SECRET
https://fn.azurewebsites.net/api/load?code=$SECRET
https://maps.googleapis.com/maps/api/geocode/json?address=x&key=$SECRET
https://api.bank.example/v1/x?password=$SECRET&u=ann
https://api.bank.example/callback?code=$SECRET&state=x
https://api.bank.example/callback#id_token=$SECRET
https://api.bank.example/v1?auth=$SECRET
https://api.bank.example/v1?sessionid=$SECRET
https://api.bank.example/login?user=ann&passwd=$SECRET
https://hooks.slack.com/services/T0/B0/$SECRET
https://bank.webhook.office.com/webhookb2/x/IncomingWebhook/$SECRET/y
https://sentry_key:$SECRET@o1.ingest.sentry.io/1
JSESSIONID=$SECRET; Path=/
Set-Cookie: session=$SECRET; Secure
Cookie: a=b; auth=$SECRET
PHPSESSID=$SECRET
sessionId=$SECRET user=ann
Session token $SECRET expired
token $SECRET has expired
Refresh token '$SECRET' is invalid
Access token is $SECRET
bearer token: $SECRET
Token: $SECRET
id_token=$SECRET
invalid_grant: refresh_token=$SECRET revoked
jwt=$SECRET
Invalid API key provided: $SECRET
Incorrect API key: $SECRET. You can find yours at https://x
API key $SECRET not valid. Please pass a valid API key.
The API key '$SECRET' was not found
Invalid access key: $SECRET
The secret $SECRET could not be used
secret: $SECRET
SECRET_KEY = '$SECRET'
DJANGO_SECRET_KEY=$SECRET
SECRET_KEY_BASE=$SECRET
FERNET_KEY=$SECRET
AIRFLOW__CORE__FERNET_KEY=$SECRET
AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=postgresql+psycopg2://airflow:$SECRET@pg/airflow
AIRFLOW_CONN_DB='postgres://ann:$SECRET@db/bank'
airflow connections add db --conn-login ann --conn-password $SECRET
airflow connections add db --conn-uri postgres://ann:$SECRET@db/bank
dbt: target: {"type": "snowflake", "user": "ann", "password": "$SECRET"}
outputs:\n  dev:\n    type: postgres\n    user: ann\n    pass: $SECRET
great_expectations: connection_string: postgresql://ann:$SECRET@db/bank
encryption.key=$SECRET
encryption_passphrase: $SECRET
master_key=$SECRET
private key passphrase: $SECRET
passphrase for key id_rsa: $SECRET
Enter passphrase: $SECRET
Password: $SECRET
Password for ann: $SECRET
password:$SECRET
pwd: $SECRET
pw=$SECRET
passcode=$SECRET
Passwort: $SECRET
Kennwort: $SECRET
DB_PW=$SECRET
db.pw=$SECRET
DBPASS=$SECRET
PASS=$SECRET ./run
userpw=$SECRET
--pwd $SECRET
--passphrase $SECRET
--secret=$SECRET
--token=$SECRET
--auth-token $SECRET
--client-secret=$SECRET
--api-token=$SECRET
-Dpassword=$SECRET
-Djavax.net.ssl.trustStorePassword=$SECRET
-Ddb.password=$SECRET
/p:Password=$SECRET
-password $SECRET
-Password "$SECRET"
ConvertTo-SecureString "$SECRET" -AsPlainText -Force
ConvertTo-SecureString -String '$SECRET' -AsPlainText
New-Object PSCredential("ann", (ConvertTo-SecureString "$SECRET" -AsPlainText -Force))
new NetworkCredential("ann", "$SECRET")
DriverManager.getConnection("jdbc:oracle:thin:@db", "ann", "$SECRET")
conn = cx_Oracle.connect("ann", "$SECRET", "db/orcl")
requests.get(url, auth=("ann", "$SECRET"))
HTTPBasicAuth('ann', '$SECRET')
client.login("ann", "$SECRET")
ftp.login(user="ann", passwd="$SECRET")
imap.login('ann@bank.example', '$SECRET')
paramiko.connect('host', username='ann', password='$SECRET')
boto3.client('s3', aws_access_key_id='AKIAQ7ZK3LMNOPQRSTUV', aws_secret_access_key='$SECRET')
.option("password", "$SECRET")
.config("spark.hadoop.fs.s3a.secret.key", "$SECRET")
props.setProperty("javax.net.ssl.keyStorePassword", "$SECRET");
new BasicAWSCredentials("AKIAQ7ZK3LMNOPQRSTUV", "$SECRET")
AwsBasicCredentials.create("AKIAQ7ZK3LMNOPQRSTUV", "$SECRET")
StorageSharedKeyCredential("lake", "$SECRET")
AzureKeyCredential("$SECRET")
ClientSecretCredential("tenant", "client", "$SECRET")
UsernamePasswordCredentials("ann", "$SECRET")
PasswordAuthentication("ann", "$SECRET".toCharArray())
Fernet(b'$SECRET')
SecretKeySpec("$SECRET".getBytes(), "AES")
hmac.new(b"$SECRET", msg, sha256)
jwt.encode(payload, "$SECRET", algorithm="HS256")
openai.api_key = "$SECRET"
OpenAI(api_key="$SECRET")
stripe.api_key = '$SECRET'
Vault(token="$SECRET")
hvac.Client(url="http://v", token="$SECRET")
redis.Redis(host="cache", password="$SECRET")
smtplib: send: 'AUTH PLAIN $SECRET\r\n'
>>> AUTH LOGIN $SECRET
PASS $SECRET
> PASS $SECRET
USER ann\r\nPASS $SECRET\r\n
AUTH $SECRET
redis: AUTH default $SECRET
CONFIG SET requirepass $SECRET
requirepass $SECRET
masterauth $SECRET
bindpw $SECRET
bind_password: $SECRET
ldap.bind.password=$SECRET
wpa_passphrase=$SECRET
psk="$SECRET"
community_string=$SECRET
enable secret 5 $SECRET
username admin password 7 $SECRET
smtp_auth_password: '$SECRET'
smtp_password=$SECRET
SMTP_PASS="$SECRET"
mail.smtp.password=$SECRET
auth_pass $SECRET
credential.helper=store password=$SECRET
connect string: user ann password $SECRET host db
Tried password $SECRET, failed
my password is $SECRET
pass=$SECRET
pass: $SECRET
pass:$SECRET
username/password = ann/$SECRET
login=ann password=$SECRET
credentials: ann:$SECRET
credential ann:$SECRET rejected
salt=$SECRET
client_assertion=$SECRET
code_verifier=$SECRET
assertion=$SECRET
samlResponse=$SECRET
private_token=$SECRET
deploy token: $SECRET
personal access token: $SECRET
registration token $SECRET
join --token $SECRET 10.0.0.1:6443
kubeadm join 10.0.0.1:6443 --token abcdef.$SECRET
docker swarm join --token $SECRET 10.0.0.1:2377
sas_token=$SECRET
sasToken: "$SECRET"
storage key $SECRET
account key: $SECRET
instrumentation key = $SECRET
shared secret: $SECRET
pre-shared key: $SECRET
hmac secret $SECRET
signing key: "$SECRET"
webhook secret: $SECRET
encryption password: $SECRET
zip password $SECRET
PIN: $SECRET
pin code: $SECRET
PIN is $SECRET
otp: $SECRET
OTP code $SECRET
2fa code: $SECRET
totp_secret=$SECRET
recovery code: $SECRET
recovery code $SECRET
security code: $SECRET
passkey: $SECRET
access code: $SECRET
""")
PLAIN = _texts(r"""
SELECT password_changed_at, token_count FROM users WHERE password_expired = false
SELECT u.password FROM users u JOIN logins l ON u.password = l.password
SELECT id, token FROM sessions WHERE token IS NOT NULL
SELECT md5(password) AS password_md5 FROM users
SELECT COUNT(DISTINCT token) AS tokens FROM words WHERE tokens > 3
SELECT token_type, COUNT(*) FROM auth_log GROUP BY token_type
SELECT pin_code, otp_sent_at FROM customers
SELECT * FROM cards WHERE pin = card_pin
SELECT pin FROM boards WHERE pin = 13 AND level = 'high'
SELECT gpio.pin, gpio.value FROM gpio WHERE gpio.pin = 17
SELECT pin AS postal_index_number FROM addresses WHERE pin = '560001'
SELECT response, nonce FROM http_log WHERE response = '200'
SELECT survey, response FROM surveys WHERE response = 'Strongly agree'
UPDATE surveys SET response = 'no answer' WHERE response IS NULL
SELECT salt, pepper FROM recipes WHERE salt = '2 tsp'
SELECT mac FROM devices WHERE mac = '00:1B:44:11:3A:B7'
SELECT code, name FROM countries WHERE code = 'DE'
SELECT key, value FROM settings WHERE key = 'theme'
SELECT key, value FROM kv WHERE key IN ('a1', 'b2')
SELECT license_key FROM licenses WHERE license_key LIKE 'A%'
SELECT foreign_key, primary_key FROM information_schema.keys WHERE primary_key = 'id'
SELECT sort_key, dist_key FROM svv WHERE sort_key = 'created_at'
SELECT partition_key, cluster_key FROM t WHERE partition_key = '2026-11-30'
SELECT surrogate_key, natural_key FROM dim WHERE natural_key = 'DE-4711'
SELECT private_room, secret_santa FROM party WHERE secret_santa = 'Eve'
SELECT secretary FROM firms WHERE secretary = 'Adam1'
SELECT passenger, passport FROM flights WHERE passenger = 'Ann' AND passport = 'C01X00T47'
SELECT pass, fail FROM results WHERE pass = 'yes'
SELECT pass_rate, passed FROM exams WHERE passed = 'true'
SELECT bypass, compass FROM roads WHERE compass = 'N42'
SELECT author, authority FROM books WHERE author = 'Le Guin' OR authority = 'BaFin2'
SELECT authorized_by, authorization_status FROM payments WHERE authorized_by = 'ann7'
SELECT signature_date FROM contracts WHERE signature_date > '2026-01-01'
SELECT cookie_flavour FROM cookies WHERE cookie_flavour = 'chocolate'
SELECT keyboard, monkey FROM zoo WHERE monkey = 'Bobo3'
SELECT turkey, hockey FROM t WHERE hockey = 'NHL2026'
SELECT 'password: ' || hint FROM hints
SELECT concat('token=', id) FROM t
SELECT concat('pin: ', pin) FROM t
SELECT CONCAT(user, '/', pass, '@', host) FROM conns
SELECT CASE WHEN password = '' THEN 'empty' ELSE 'set' END FROM users
SELECT CASE WHEN token = 'expired' THEN 1 END FROM t
SELECT NVL(password, 'none') FROM users
SELECT COALESCE(token, 'n/a') AS token FROM t
SELECT length(password) AS password_length FROM users WHERE length(password) < 8
SELECT regexp_replace(password, '.', '*') FROM users
SELECT mask(password), mask_hash(ssn) FROM users
SELECT split(auth_header, ' ')[1] FROM requests
SELECT get_json_object(body, '$.password') FROM events
SELECT body:password::string FROM events
SELECT body->>'password' AS pw FROM events
SELECT data->'token'->>'type' FROM events
SELECT json_extract(data, '$.api_key') FROM t
SELECT JSON_VALUE(data, '$.secret') FROM t
SELECT payload['token'] FROM events
SELECT map('password', password, 'user', user) FROM t
SELECT named_struct('token', token, 'n', 1) FROM t
SELECT struct(token AS token, pos AS pos) FROM words
SELECT explode(tokens) AS token FROM docs LATERAL VIEW explode(tokens) t AS token
SELECT token, ROW_NUMBER() OVER (PARTITION BY token ORDER BY pos) AS rn FROM words
SELECT token FROM words WHERE token IN ('the', 'and', 'of')
SELECT * FROM words WHERE token = 'the'
SELECT * FROM words WHERE token <> 'and' AND pos = 'NOUN'
SELECT * FROM pos WHERE key = 'B-17' AND token = ','
CREATE TABLE users (id INT, password VARCHAR(255) NOT NULL, token CHAR(36), pin CHAR(4))
CREATE TABLE users (id BIGINT GENERATED BY DEFAULT AS IDENTITY, pw_hash BYTEA, otp_secret_id UUID)
CREATE TABLE t (password STRING COMMENT 'hashed, never plain', token STRING)
CREATE TABLE t (password STRING COMMENT 'the password of the user')
CREATE TABLE t (token Nullable(String), pin UInt16) ENGINE = MergeTree ORDER BY token
CREATE TABLE t (a INT, PRIMARY KEY (a), KEY token_idx (token), UNIQUE KEY pw (password))
CREATE TABLE api_keys (api_key VARCHAR(64) PRIMARY KEY, secret_hash CHAR(64))
CREATE INDEX token_idx ON t (token, password)
CREATE UNIQUE INDEX ux_users_token ON users(token) WHERE token IS NOT NULL
ALTER TABLE users ADD COLUMN password_hint TEXT DEFAULT 'none'
ALTER TABLE users RENAME COLUMN passwd TO password
ALTER TABLE users DROP COLUMN password
ALTER TABLE users ALTER COLUMN token SET DEFAULT ''
COMMENT ON COLUMN users.password IS 'bcrypt hash of the password'
COMMENT ON COLUMN users.token IS 'Session token, rotated daily'
CREATE VIEW v AS SELECT id, '***' AS password FROM users
CREATE VIEW safe AS SELECT id, 'redacted' AS token, NULL AS pin FROM users
CREATE ROLE auditor NOLOGIN PASSWORD NULL
ALTER USER ann PASSWORD EXPIRE
CREATE USER ann IDENTIFIED EXTERNALLY
CREATE USER ann IDENTIFIED GLOBALLY AS 'CN=ann,O=bank'
CREATE USER ann IDENTIFIED WITH kerberos REALM 'BANK'
CREATE USER ann IDENTIFIED VIA unix_socket
GRANT SELECT (password) ON users TO auditor
REVOKE ALL ON tokens FROM public
INSERT INTO words (token, pos) VALUES ('the', 'DET'), ('dog', 'NOUN')
INSERT INTO users SELECT id, password, token FROM staging.users
INSERT INTO users (id, password) SELECT id, password FROM old_users
INSERT INTO audit (action, detail) VALUES ('password_reset', 'by mail')
INSERT INTO audit VALUES (1, 'password', 'changed')
INSERT INTO t (name, key) VALUES ('x', 'k1')
INSERT INTO boards (pin, level) VALUES (13, 'high')
MERGE INTO users u USING new n ON u.token = n.token WHEN MATCHED THEN UPDATE SET u.password = n.password
UPDATE users SET password = new_password WHERE token = reset_token
UPDATE users u SET u.password = s.pw FROM staging s WHERE u.id = s.id
UPDATE users SET token = NULL, password = DEFAULT WHERE id = 1
UPDATE users SET token = upper(token)
UPDATE t SET secret = concat(a, b) WHERE c = 'x1'
DELETE FROM tokens WHERE expires_at < now() - interval '1 day'
DELETE FROM sessions WHERE token = (SELECT max(token) FROM sessions)
SELECT * FROM read_parquet('s3://b/token=1/password=x/part-0.parquet')
SELECT * FROM 's3://lake/pin=12/part-1.parquet'
SELECT * FROM parquet.`s3a://lake/token=a/x`
SELECT * FROM delta.`abfss://raw@lake.dfs.core.windows.net/users/password_resets`
SELECT * FROM s3('https://b.s3.amazonaws.com/f.csv', 'CSV')
SELECT * FROM s3('https://b.s3.amazonaws.com/f.csv', NOSIGN, 'CSVWithNames')
SELECT * FROM iceberg_scan('s3://lake/users')
SELECT * FROM TABLE(FLATTEN(input => tokens))
SELECT * FROM tokens t, LATERAL FLATTEN(input => t.keys) k
SELECT TOP 10 [password], [key] FROM [dbo].[users] WITH (NOLOCK) WHERE [key] = N'x'
SELECT [u].[pin] FROM [dbo].[users] AS [u] WHERE [u].[pin] = @pin
SELECT * FROM users WHERE password = @password AND token = :token
SELECT * FROM users WHERE password = ? AND pin = ?
SELECT * FROM users WHERE password = $1 AND token = $2
SELECT * FROM users WHERE password = %s AND token = %(token)s
SELECT * FROM users WHERE password = {password} AND pin = {{ pin }}
SELECT * FROM users WHERE password = '{{ var("pw") }}'
SELECT * FROM {{ ref('tokens') }} WHERE token = '{{ env_var("TOKEN") }}'
SELECT * FROM users WHERE password = '${DB_PASSWORD}'
SELECT * FROM users WHERE password LIKE '%123%'
SELECT * FROM users WHERE password ~ '^[a-z]+$'
SELECT * FROM users WHERE password REGEXP '[0-9]{4}'
SELECT * FROM users WHERE password IN (SELECT password FROM leaked)
SELECT password, 'x' FROM users UNION SELECT token, 'y1' FROM tokens
SELECT t.token "Token Nr1", t.pin "Pin" FROM t
SELECT t.password AS `Password 2` FROM t
WITH tokens AS (SELECT token, cnt FROM words) SELECT * FROM tokens WHERE cnt > 10
WITH pw AS (SELECT 1 AS a) SELECT * FROM pw
WITH secret AS (SELECT * FROM t WHERE x = 'a1b2c3') SELECT * FROM secret
SELECT * FROM t TABLESAMPLE (10 PERCENT) WHERE hash_key = 'b1946ac92492'
SELECT * FROM t WHERE row_key = 'user#4711' AND range_key = '2026#11'
SELECT * FROM t WHERE idempotency_key = 'c0ffee-42'
SELECT * FROM t WHERE join_key = 'a1' AND bucket_key = 'b2'
SELECT * FROM t WHERE object_key = 'raw/2026/11/30/f1.csv'
SELECT * FROM t WHERE s3_key = 'in/f1.csv' AND storage_key = 'in/f2.csv'
SELECT * FROM t WHERE translation_key = 'login.password.label'
SELECT * FROM i18n WHERE key = 'password' AND text = 'Passwort1'
SELECT * FROM labels WHERE name = 'password' AND value = 'Kennwort'
SELECT name, value FROM form WHERE name = 'token'
SELECT * FROM flags WHERE name = 'two_factor_auth' AND enabled = 'true'
SELECT auth FROM t WHERE auth = 'kerberos'
SELECT * FROM t WHERE auth_type = 'LDAP2' AND auth_method = 'oauth2'
SELECT * FROM t WHERE credential_type = 'x509'
SELECT * FROM events WHERE event = 'password_reset_v2'
SELECT * FROM events WHERE action = 'token=refresh'
SET spark.sql.shuffle.partitions = 200
SET hive.exec.dynamic.partition.mode = nonstrict
SET search_path TO secrets, public
SET @pin = (SELECT max(pin) FROM t)
SET LOCAL password_encryption = 'scram-sha-256'
ALTER SYSTEM SET password_encryption = 'md5'
SHOW CREATE TABLE auth.tokens
SHOW SECRETS
DESCRIBE TABLE secrets.passwords
EXPLAIN SELECT token FROM t WHERE token = 'abc'
CALL system.rewrite_data_files(table => 'lake.auth.tokens', strategy => 'sort', sort_order => 'token ASC')
CALL lake.system.expire_snapshots('auth.tokens', TIMESTAMP '2026-11-01 00:00:00')
CREATE TABLE t USING iceberg PARTITIONED BY (bucket(16, token)) TBLPROPERTIES ('format-version'='2', 'write.metadata.delete-after-commit.enabled'='true')
CREATE TABLE t WITH ('connector'='kafka', 'topic'='tokens.v1', 'key.format'='json', 'key.fields'='token', 'value.format'='json')
CREATE TABLE t (k STRING) WITH (kafka_topic='pins', key_format='avro', partitions=6)
COPY t FROM 's3://b/f.csv' IAM_ROLE 'arn:aws:iam::123456789012:role/loader' CSV
COPY INTO t FROM @stage/tokens FILE_FORMAT = (TYPE = 'CSV' FIELD_DELIMITER = '|')
CREATE STAGE s URL='s3://b' STORAGE_INTEGRATION = s3_int
CREATE EXTERNAL TABLE t LOCATION 's3://b/password_resets/'
CREATE POLICY p ON tokens USING (owner = current_user)
CREATE MASKING POLICY pw AS (val string) RETURNS string -> CASE WHEN current_role() IN ('ADMIN') THEN val ELSE '*****' END
SELECT aes_encrypt(name, key_col) FROM t
SELECT hmac(name, k.key, 'sha256') FROM t JOIN keys k ON k.id = t.key_id
SELECT sha2(concat(password, salt), 256) FROM users
SELECT crypt(password, gen_salt('bf', 8)) FROM users
SELECT DECODE(token, 'A1', 'first', 'B2', 'second') FROM t
SELECT TRANSLATE(pin, '0123456789', 'abcdefghij') FROM t
SELECT DATE_FORMAT(token_expiry, 'yyyy-MM-dd HH:mm:ss') FROM t
SELECT pin::text || '-' || puk::text FROM sims
SELECT ARRAY['token1', 'token2'] AS tokens
SELECT STRING_AGG(token, ', ') FROM words
SELECT LISTAGG(password_policy, ',') WITHIN GROUP (ORDER BY 1) FROM p
SELECT CONNECT_BY_ROOT password FROM t CONNECT BY PRIOR id = parent
SELECT /*+ BROADCAST(tokens) */ * FROM t JOIN tokens ON t.token = tokens.token
SELECT a -- the password column is hashed
SELECT a /* token: see docs/auth.md */ FROM t
SELECT a FROM t -- rotate the password monthly
-- secret: none here
-- password is stored as bcrypt
Token expired at 2026-11-30T00:00:00Z
Invalid token at line 3, column 5
Unexpected token '<', "<!DOCTYPE "... is not valid JSON
org.apache.spark.sql.catalyst.parser.ParseException: mismatched input 'token' expecting {<EOF>, ';'}(line 1, pos 7)
[PARSE_SYNTAX_ERROR] Syntax error at or near 'password'. SQLSTATE: 42601 (line 1, pos 20)
[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `token` cannot be resolved. Did you mean one of the following? [`tokens`, `id`, `t1`].
extraneous input 'KEY' expecting 'TOKEN1'
missing token ')' at 'FROM'
ERROR: column "password" does not exist at character 8
ERROR: column "pin1" of relation "cards" does not exist
ORA-00904: "PASSWORD": invalid identifier
ORA-28001: the password has expired
ORA-01017: invalid username/password; logon denied
FATAL: password authentication failed for user "ann"
FATAL: no pg_hba.conf entry for host "10.0.0.4", user "ann", database "bank", no encryption
Access denied for user 'ann'@'10.0.0.7' (using password: YES)
Access denied for user 'root'@'localhost' (using password: NO)
Login failed for user 'sa'. Reason: Password did not match that for the login provided. [CLIENT: 10.0.0.7]
Your password must contain at least 8 characters and 1 digit.
Password must be between 12 and 64 characters
Password policy: minimum length 12, maximum age 90d
password length: 16
Password strength: weak
Password last changed: 2026-11-02
Password for user ann will expire in 7 days
Please enter your password and press Enter
Enter the PIN that we sent to +49 170 1234567
Enter PIN:
PIN must have 4 digits
pin 13 is already in use by gpio driver
GPIO pin: 17 set to HIGH
pin=13 mode=OUTPUT
otp service: up
otp.service started in 3.2 s
otp: Erlang/OTP 26 [erts-14.2]
Erlang/OTP 26.2.1 started
response=200 time=12ms
response: 404 Not Found
response="OK" bytes=1234
HTTP response: 503 Service Unavailable
got response: Connection reset by peer
status=401 response=Unauthorized user=ann
nonce too low: next nonce 42, tx nonce 41
Secret "db-credentials" not found in namespace "bank"
secrets "db-password-v2" is forbidden: User "system:serviceaccount:bank:etl" cannot get resource
MountVolume.SetUp failed for volume "db-secret" : secret "db-secret1" not found
Unable to mount volumes: unmounted volumes=[token-abc12 secret-vol]
Successfully pulled secret: bank/db (version 7)
Reading secret from /run/secrets/db_password
password file: /etc/strandline/pw.txt
password_file=/run/secrets/db_password1
passwordFile: /etc/pw/db1
--password-file /run/secrets/pw1
PASSWORD_FILE=/run/secrets/db_pw1
secretKeyRef: {name: db-credentials, key: password}
valueFrom:\n  secretKeyRef:\n    name: db1-secret\n    key: password
secretName: bank-tls-2026
imagePullSecrets:\n- name: regcred1
password: ${DB_PASSWORD}
password: {{ .Values.db.password }}
password: "{{ env_var('DBT_PASSWORD') }}"
password: !vault |
password: <redacted>
password: ****
password=****
password=[hidden]
password: null
password:
password = None
password = os.environ["DB_PASSWORD"]
password = os.getenv('DB_PASSWORD')
password = getpass.getpass()
password = config.get("db", "password")
password = dbutils.secrets.get("scope1", "db1")
password=args.password
password=self._password
token = response.json()["access_token"]
token = request.headers.get("X-Token")
token: str
token: Optional[str] = None
api_key: SecretStr
def login(user: str, password: str) -> Token:
class PasswordHasher(BasePasswordHasher):
if password != confirm_password:
if token.type == "NUMBER1":
for token in tokens:
assert token == expected_token
val token: String = credentials.token
private final String password;
public void setPassword(String password) {
this.password = password;
String token = jwtService.createToken(user);
at com.bank.auth.TokenService.refresh(TokenService.java:42)
at org.apache.hadoop.security.token.Token.decodeWritable(Token.java:256)
at org.apache.spark.deploy.security.HadoopDelegationTokenManager.obtainDelegationTokens(HadoopDelegationTokenManager.scala:142)
INFO HadoopFSDelegationTokenProvider: getting token for: DFS[DFSClient[clientName=DFSClient_NONMAPREDUCE_1, ugi=ann (auth:KERBEROS)]] with renewer yarn/rm1@BANK
INFO SecurityManager: SecurityManager: authentication disabled; ui acls disabled; users with view permissions: ann
INFO Utils: Fetching s3a://b/password_resets/part-00000.parquet
INFO PartitioningAwareFileIndex: listing s3a://lake/events/token=abc1/pin=2/day=2026-11-30
INFO CodeGenerator: Code generated in 12.3 ms
WARN SharedInMemoryCache: Evicting cached table partition metadata key=tbl1
WARN Client: Exception encountered while connecting to the server : org.apache.hadoop.ipc.RemoteException: token (HDFS_DELEGATION_TOKEN token 123 for ann) can't be found in cache
26/11/30 01:00:00 INFO TokenAwareScheduler: key=task-17 locality=ANY
Using key: id in table users (sort key: created_at)
primary key: order_id
foreign key: customer_id references customers(id)
Duplicate entry 'ann@bank.example' for key 'users.email_1'
Duplicate key value violates unique constraint "tokens_pkey" DETAIL: Key (token)=(7) already exists.
Key (email)=(ann@bank.example) already exists.
KeyError: 'password'
KeyError: "token"
AttributeError: 'NoneType' object has no attribute 'token1'
TypeError: login() missing 1 required positional argument: 'password'
ModuleNotFoundError: No module named 'secrets2'
ImportError: cannot import name 'Token1' from 'auth'
Auth: OK
auth=kerberos
auth: ldap2
auth_mechanism=GSSAPI
sasl.mechanism=SCRAM-SHA-256
security.protocol=SASL_SSL
sasl.kerberos.service.name=kafka
ssl.keystore.location=/etc/kafka/k1.jks
ssl.keystore.type=PKCS12
key.serializer=org.apache.kafka.common.serialization.StringSerializer
key.converter.schemas.enable=false
max.tokens=4096
max_tokens: 512, total_tokens: 9812
prompt tokens: 1200, completion tokens: 88
tokens per second: 42.7
token count: 88
token_limit=8192
num_tokens=128
tokenizer=bert-base-uncased2
Tokenizer loaded: gpt2
author: Ann B2
authors=ann1,bob2
authority=login.microsoftonline.com
authenticated user ann7 from 10.0.0.7
authorization: granted
authorized: true
Authorization succeeded for ann1
credential provider: aws2
credentialsProvider=com.amazonaws.auth.InstanceProfileCredentialsProvider
credentials: [EnvironmentVariableCredentialsProvider, ProfileCredentialsProvider2]
using credentials of ann1
signature: f(a: int1) -> str
Signature expired: 20261130T000000Z is now earlier than 20261130T001500Z
cookie policy: strict
cookies=disabled
session=7 user=ann
session id: none
passed=12 failed=3 skipped=1
pass=3 fail=0
pass 2 of 3 completed
test passed: 42
passing: v2
passive=true
bypass=no1
compass: N42
passage: Lorem1
passthrough=eth0
passenger=4711
salt=2tsp
salted=true
hash_key=order_id1
partition_key=user_4711
cache key=orders:v3
cache_key: report/2026-11-30
s3 key: raw/2026/f1.csv
object key=raw/f1.csv
routing key: orders.created.v1
routing_key=orders.v2
message key=4711
record key: order-4711
keys=12 rows=300
key: value1
key=abc1
Keyboard layout: de105
monkey: Bobo7
access key age: 93 days
access_key_age=93
api key count: 3
secret_version=3
secret rotation: 30d
secret manager: gcp1
Secrets Manager can't find the specified secret.
license: Apache-2.0
license_key_type=trial30
activation date: 2026-11-30
activation=relu6
verification: passed1
verification code sent to ann@bank.example
code=0
exit code: 137
error code 1045
status code: 404
code: ENOENT2
zip code: 10115
zip_code=10115
area code: 030
country code=DE1
http://airflow:8080/dags/auth_tokens/grid?dag_run_id=scheduled__2026-11-30T00:00:00+00:00&task_id=load_tokens
https://spark-history:18080/history/application_1732000000000_0001/jobs/?id=3
https://jira.bank.example/browse/AUTH-42?focusedCommentId=1234567
https://grafana/d/abc123?orgId=1&from=now-6h&to=now&var-key=orders1
https://github.com/bank/etl/blob/main/auth/token.py#L42
https://docs.bank.example/howto/reset-password/index.html
https://console.aws.amazon.com/s3/buckets/lake?prefix=tokens/&region=eu-west-1
https://portal.azure.com/#@bank.onmicrosoft.com/resource/subscriptions/1
s3://lake/secrets/keys/part-00000-8f7a.c000.snappy.parquet
gs://lake/password_resets/2026/11/30
abfss://raw@lake.dfs.core.windows.net/tokens
hdfs://nn:8020/user/ann/secret_project/x1
jdbc:postgresql://db:5432/bank
kafka://b1:9092,b2:9092
docker run -p 8080:80 -e MODE=prod1 nginx:1.27
mysql -h db -u ann -p bank
mysqldump -P 3307 -h db bank
psql -h db -p 5433 -U ann bank
ssh -p 2222 ann@host1
scp -P 2222 f1 ann@host1:/in
tar -xzf f1.tgz -C /opt
zip -r out1.zip dir
openssl x509 -in c.pem -noout -enddate
ssh-keygen -t ed25519 -f id1
git commit -m "Rotate token1 weekly"
git log --author=ann1
kubectl get secret db-1 -o yaml
kubectl create secret generic db1 --from-file=pw.txt
vault kv get secret/db1
vault login -method=oidc role=loader1
aws kms encrypt --key-id alias/bank1 --plaintext fileb://x
gcloud secrets list --project bank1
az keyvault secret show --vault-name v1 --name db1
echo "done 100%" | tee log1
echo token1 | wc -c
curl -s https://api.bank.example/v1/tokens/count?page=2
curl -o f1 -L https://x/y1
keytool -list -keystore k1.jks -alias a1
spark-submit --conf spark.sql.adaptive.enabled=true --keytab /etc/ann1.keytab --principal ann1@BANK job.py
java -Xmx4g -Dfile.encoding=UTF-8 -jar auth-token-service-1.2.3.jar
npm install token-types@4.2.1 csrf-token1
pip install python-jose==3.3.0 passlib[bcrypt]==1.7.4
Collecting keyring>=15.1
Requirement already satisfied: secretstorage>=3.2
USER ann logged in from 10.0.0.7
User ann/admin1 granted role x
hive/node1.bank@BANK.EXAMPLE
kafka/b1@BANK
actions/checkout@v4
import/export@2026
mailto:ann@bank.example
ann@db1:5432
Contact: ann/bob@bank.example
OAuth 2.0 flow: authorization_code, PKCE S256
grant_type=client_credentials scope=read1
grant_type=password&username=ann
response_type=code&client_id=abc123&scope=openid
state=RUNNING1 key=running
IDENTITY = 'Managed Identity'
Basic authentication is not supported in v2
Bearer authentication required
Digest authentication is not enabled for realm1
Negotiate is supported by server1
Password authentication is disabled, use key authentication
Private key file: /home/ann/.ssh/id_rsa1
private_key_path=/home/ann/.ssh/k1.p8
privateKeyPath: /etc/keys/k1.p8
public key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ann@x
public_key=abc123
key_id=alias/bank1
kms_key_id=arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab
kms key: arn:aws:kms:eu-west-1:123456789012:key/1234abcd
access_key_id_count=2
encryption: AES256
encryption=aws:kms
encryption_algorithm=AES-256-GCM
cipher=TLS_AES_256_GCM_SHA384
hmac=sha256
checksum=9e107d9d372bb6826bd81d3542a419d6
etag: "9e107d9d372bb6826bd81d3542a419d6"
commit 9e107d9d372bb6826bd81d3542a419d6a1b2c3d4
run id: 0196b3e0-8f7a-7c1e-9a3f-1234567890ab
traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
snapshot-id: 3051729675574597004
correlation id=ab12cd34
request id: 8YQ6Z1
x-request-id: ab12cd34
x-amz-request-id: 0A49CE4060975EAC
user-agent: curl/8.5.0
{"name": "password", "type": "string", "nullable": true}
{"name": "token", "type": "VARCHAR(36)"}
{"column": "password", "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}]}
{"fields": [{"name": "pin", "type": "int"}, {"name": "otp", "type": "string"}]}
{"key": "team", "value": "auth2"}
{"password_policy": {"min_length": 12}}
{"tokenCount": 12, "maxTokens": 512}
{"authProvider": "ldap1"}
{"keyColumns": ["id1", "token"]}
root\n |-- password: string (nullable = true)\n |-- pin: integer (nullable = true)
== Physical Plan ==\n*(1) Project [token#12, password#13, md5(cast(password#13 as binary)) AS pw#14]
*(1) Filter (isnotnull(token#12) AND (token#12 = the))
Relation auth.users[id#1,password#2,token#3] parquet
ReadSchema: struct<token:string,pin:int,password:string>
PushedFilters: [IsNotNull(token), EqualTo(token,abc)]
+------+--------+\n|user  |password|\n+------+--------+
AnalysisException: Column 'password' does not exist. Did you mean one of the following? [pw, token1]
Project [password AS password#5, token AS tok#6]
net user growth rose by 12 percent
the net user count is 4711
TLS conn read/write timeout after 30s
conn pool main/replica1 exhausted
the salt lake city office has 4711 rows
pinned to node1, spinning up pin4711
access code owners: @team1
OAuth flow for client abc123 started
Digest of image sha256:9e107d9d372bb6826bd81d3542a419d6
AUTH plan: see page 12
the assertion at line 4711 failed
assertion failed: expected 1234
session id of the query is unknown
zip -r out.zip dir1 -x P2
SELECT 'a1b2c3' AS key_name, token FROM t
SELECT pin, salt, otp FROM t WHERE otp = 4711
SELECT * FROM trades WHERE security_code = 'AAPL'
INSERT INTO trades (security_code, qty) VALUES ('US0378331005', 5)
the zip -Po x
expdp data/x
ls impdp logs/dir
OAuth scope=read is enabled
Digest algorithm=MD5 used
""")
