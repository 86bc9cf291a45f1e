CREATE NAMESPACE IF NOT EXISTS lake.shop;
CREATE TABLE lake.shop.ods_mysql_users (id bigint, name string, birthday string, ts timestamp) USING iceberg;
CREATE TABLE lake.shop.dim_mysql_company (user_id bigint, company_name string) USING iceberg;
CREATE TABLE lake.shop.dwd_hudi_users
  (id bigint, name string, company_name string, birthday string, ts timestamp, `partition` string) USING iceberg;
CREATE TABLE lake.shop.orders
  (id bigint, customer_id bigint, amount decimal(10,2), placed_at timestamp, status string,
   items array<struct<sku: string, qty: int>>, tags map<string, string>, address struct<city: string, zip: string>)
  USING iceberg;
CREATE TABLE lake.shop.customers (id bigint, name string, email string, city string) USING iceberg;
CREATE TABLE lake.shop.totals (customer_id bigint, total decimal(20,2), n bigint) USING iceberg;
CREATE TABLE lake.shop.names (name string) USING iceberg;
CREATE TABLE lake.shop.archive
  (id bigint, one struct<sku: string, qty: bigint>, items array<struct<sku: string, qty: bigint>>,
   first map<string, struct<sku: string, qty: bigint>>) USING iceberg;
CREATE TABLE lake.shop.edges (parent bigint, child bigint) USING iceberg;
CREATE OR REPLACE TEMPORARY VIEW paid AS SELECT id, customer_id, amount FROM lake.shop.orders WHERE status = 'paid';
CREATE OR REPLACE TEMPORARY VIEW loud (who, place) AS SELECT upper(name), city FROM lake.shop.customers
